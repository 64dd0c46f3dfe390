import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';

/** What passes for a PDF; another one for every `about`. */
export function pdf(about: string): string {
  return `%PDF-1.7\n% ${about}\n%%EOF\n`;
}

/** Files in a folder of their own, which goes with the test. */
export async function folderOf(files: Readonly<Record<string, string | Uint8Array>>) {
  const folder = await mkdtemp(join(tmpdir(), 'scanfeed-pdfs-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const path = (name = '') => join(folder, name);
  const write = async (name: string, content: string | Uint8Array) => {
    await mkdir(dirname(path(name)), { recursive: true });
    await writeFile(path(name), content);
  };
  for (const [name, content] of Object.entries(files)) await write(name, content);
  return { path, write };
}
