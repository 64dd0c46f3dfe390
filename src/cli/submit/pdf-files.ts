import { createHash } from 'node:crypto';
import { openAsBlob } from 'node:fs';
import { access, constants, readdir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';

/** A file that looks like a PDF. Its content stays on disk; a change after the check is detected when it is read. */
export interface PdfFile {
  /** Path as given, or as found in a folder. */
  readonly path: string;
  /** Name without folders. */
  readonly name: string;
  readonly content: Blob;
  /** SHA-256 of the content, hex. */
  readonly sha256: string;
}

/** A file that cannot be sent, with the reason. */
export interface RefusedFile {
  readonly path: string;
  readonly reason: string;
}

/** Length of the part in which PDF readers search for the header, bytes. */
const HEADER_WITHIN_BYTES = 1024;
const HEADER = Buffer.from('%PDF-');

/** Returns the given files, and the visible `.pdf` files directly in the given folders. Each path once. */
export async function findFiles(paths: readonly string[]): Promise<readonly (string | RefusedFile)[]> {
  const found: (string | RefusedFile)[] = [];
  for (const path of paths) {
    try {
      if (!(await stat(path)).isDirectory()) found.push(path);
      else found.push(...(await filesIn(path)));
    } catch (error) {
      found.push({ path, reason: whyUnreadable(error) });
    }
  }
  return [...new Set(found)];
}

async function filesIn(folder: string): Promise<readonly (string | RefusedFile)[]> {
  const names = (await readdir(folder)).filter((name) => /^[^.].*\.pdf$/i.test(name)).sort();
  if (names.length === 0) return [{ path: folder, reason: 'the folder contains no .pdf files' }];
  return names.map((name) => join(folder, name));
}

/** Reads the whole file in chunks and returns it with its hash, or the reason for refusing it. Never rejects. */
export async function checkFile(path: string): Promise<PdfFile | RefusedFile> {
  const refused = (reason: string): RefusedFile => ({ path, reason });
  try {
    const found = await stat(path);
    if (!found.isFile()) return refused('it is not a file');
    if (found.size === 0) return refused('it is empty');
    await access(path, constants.R_OK);
    const content = await openAsBlob(path, { type: 'application/pdf' });
    const { head, sha256 } = await readThrough(content);
    if (!head.includes(HEADER)) return refused('it is not a PDF: it does not start with %PDF-');
    return { path, name: basename(path), content, sha256 };
  } catch (error) {
    return refused(whyUnreadable(error));
  }
}

async function readThrough(content: Blob): Promise<{ head: Buffer; sha256: string }> {
  const hash = createHash('sha256');
  let head = Buffer.alloc(0);
  for await (const chunk of content.stream()) {
    hash.update(chunk);
    if (head.length < HEADER_WITHIN_BYTES) head = Buffer.concat([head, chunk]).subarray(0, HEADER_WITHIN_BYTES);
  }
  return { head, sha256: hash.digest('hex') };
}

/** Returns whether the file has changed since its check: Node refuses to read a changed file. */
export async function hasChanged({ content }: PdfFile): Promise<boolean> {
  try {
    await content.slice(0, 1).arrayBuffer();
    return false;
  } catch {
    return true;
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file or folder',
  ENOTDIR: 'there is no such file or folder',
  EACCES: 'permission denied; check its permissions',
  EPERM: 'permission denied; check its permissions',
};

function whyUnreadable(error: unknown): string {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown };
  if (typeof code === 'string') return REASONS[code] ?? `it cannot be read (${code})`;
  return name === 'NotReadableError' ? 'it is being modified' : 'it cannot be read';
}
