import { createHash } from 'node:crypto';
import { openAsBlob } from 'node:fs';
import { access, constants, readdir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';

/** A file that looks like a PDF. Its content stays on the disk: a change after the check is noticed when it is read. */
export interface PdfFile {
  /** As it was given, or found in a folder. */
  readonly path: string;
  /** Its name without folders. */
  readonly name: string;
  readonly content: Blob;
  /** Of the content, hex. */
  readonly sha256: string;
}

/** A file that is not to be sent, with the reason for a person. */
export interface RefusedFile {
  readonly path: string;
  readonly reason: string;
}

/** Readers of PDF look for the header in so many bytes: some files have others before it. */
const HEADER_WITHIN_BYTES = 1024;
const HEADER = Buffer.from('%PDF-');

/** The files named, and in place of each folder the visible `.pdf` files that lie directly in it. Each path once. */
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
  if (names.length === 0) return [{ path: folder, reason: 'the folder holds no .pdf files' }];
  return names.map((name) => join(folder, name));
}

/** Reads the whole file once, piece by piece. Rejects with the signal's reason alone. */
export async function checkFile(path: string, signal: AbortSignal): Promise<PdfFile | RefusedFile> {
  const refused = (reason: string): RefusedFile => ({ path, reason });
  try {
    const found = await stat(path);
    if (!found.isFile()) return refused('it is no file');
    if (found.size === 0) return refused('it is empty');
    await access(path, constants.R_OK);
    const content = await openAsBlob(path, { type: 'application/pdf' });
    const { head, sha256 } = await readThrough(content, signal);
    if (!head.includes(HEADER)) return refused('it is no PDF: it does not begin with %PDF-');
    return { path, name: basename(path), content, sha256 };
  } catch (error) {
    signal.throwIfAborted();
    return refused(whyUnreadable(error));
  }
}

async function readThrough(content: Blob, signal: AbortSignal): Promise<{ head: Buffer; sha256: string }> {
  const hash = createHash('sha256');
  let head = Buffer.alloc(0);
  for await (const chunk of content.stream()) {
    signal.throwIfAborted();
    hash.update(chunk);
    if (head.length < HEADER_WITHIN_BYTES) head = Buffer.concat([head, chunk]).subarray(0, HEADER_WITHIN_BYTES);
  }
  return { head, sha256: hash.digest('hex') };
}

/** Whether the file is no longer the one that was checked: Node then refuses to read it. */
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
  EACCES: 'it may not be read: look at its permissions',
  EPERM: 'it may not be read: look at its permissions',
};

function whyUnreadable(error: unknown): string {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown };
  if (typeof code === 'string') return REASONS[code] ?? `it cannot be read (${code})`;
  return name === 'NotReadableError' ? 'it is being changed at this moment' : 'it cannot be read';
}
