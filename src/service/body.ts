import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate } from 'node:zlib';
import type { Dispatcher } from 'undici';
import { BodyTooLargeError, CutBodyError, NotJsonError } from './errors.js';

type Response = Pick<Dispatcher.ResponseData, 'statusCode' | 'headers' | 'body'>;

/** A body that is JSON. */
export interface JsonBody {
  /** Decompressed, without a byte order mark. */
  readonly body: Uint8Array;
  /** With U+FFFD where the bytes are not UTF-8. */
  readonly text: string;
  readonly validUtf8: boolean;
  readonly value: unknown;
}

const DECOMPRESS: Readonly<
  Record<string, (bytes: Uint8Array, options: { maxOutputLength: number }) => Promise<Buffer>>
> = {
  gzip: promisify(gunzip),
  'x-gzip': promisify(gunzip),
  deflate: promisify(inflate),
  br: promisify(brotliDecompress),
};

/**
 * Reads a whole answer as JSON. At most `maxBytes` are held, before and after decompression.
 * @throws BodyTooLargeError, CutBodyError, NotJsonError, or the error of the connection
 */
export async function readJson(response: Response, maxBytes: number): Promise<JsonBody> {
  const status = response.statusCode;
  const received = await readBytes(response, maxBytes);
  const bytes = withoutByteOrderMark(await decompress(received, response, maxBytes));
  const notJson = (reason: string) => new NotJsonError(status, reason, fingerprint(bytes));
  if (bytes.length === 0) throw notJson('an empty body');
  if (!isJsonType(header(response, 'content-type'))) throw notJson('another content type than application/json');
  const { text, validUtf8 } = decodeUtf8(bytes);
  try {
    return { body: bytes, text, validUtf8, value: JSON.parse(text) };
  } catch {
    // The end of the connection is the end of such a body, so that only its syntax shows whether it is whole.
    if (isCloseDelimited(response)) throw new CutBodyError(status, `${bytes.length} bytes of incomplete JSON`);
    throw notJson('the syntax is invalid');
  }
}

/**
 * Reads the raw bytes. Over the bound the connection is given up, as the rest could be endless.
 * @throws BodyTooLargeError, or the error of the connection
 */
export async function readBytes({ body, headers }: Response, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  if (Number(headers['content-length'] ?? 0) > maxBytes) {
    body.on('error', () => undefined).destroy();
    throw new BodyTooLargeError(maxBytes);
  }
  for await (const chunk of body as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) throw new BodyTooLargeError(maxBytes); // leaving the loop destroys the body
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size);
}

/** None is asked for, but what stands between may compress all the same. */
async function decompress(bytes: Buffer, response: Response, maxBytes: number): Promise<Buffer> {
  const encoding = header(response, 'content-encoding')?.trim().toLowerCase() ?? '';
  if (encoding === '' || encoding === 'identity' || bytes.length === 0) return bytes;
  const decompressor = Object.hasOwn(DECOMPRESS, encoding) ? DECOMPRESS[encoding] : undefined;
  if (decompressor === undefined) {
    throw new NotJsonError(response.statusCode, 'an unknown content encoding', fingerprint(bytes));
  }
  try {
    return await decompressor(bytes, { maxOutputLength: maxBytes });
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ERR_BUFFER_TOO_LARGE') throw new BodyTooLargeError(maxBytes);
    throw new CutBodyError(response.statusCode, 'its compression is broken');
  }
}

/** A header's value; the first where it was sent more than once. */
export function header({ headers }: Pick<Response, 'headers'>, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value : value?.[0];
}

/** `application/json` and its kin; a missing content type is no contradiction. */
function isJsonType(contentType: string | undefined): boolean {
  return contentType === undefined || /^\s*application\/([\w.+-]+\+)?json\s*(;|$)/i.test(contentType);
}

/** Neither Content-Length nor chunks tell where the body ends. */
function isCloseDelimited(response: Response): boolean {
  return header(response, 'content-length') === undefined && header(response, 'transfer-encoding') === undefined;
}

function withoutByteOrderMark(bytes: Buffer): Buffer {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;
}

function decodeUtf8(bytes: Uint8Array): { text: string; validUtf8: boolean } {
  try {
    return { text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes), validUtf8: true };
  } catch {
    return { text: new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes), validUtf8: false };
  }
}

function fingerprint(bytes: Uint8Array): { size: number; sha256Prefix: string } {
  return { size: bytes.length, sha256Prefix: createHash('sha256').update(bytes).digest('hex').slice(0, 12) };
}
