import { createHash } from 'node:crypto';
import type { Multipart, MultipartFile } from '@fastify/multipart';
import type { FastifyRequest } from 'fastify';
import { Refusal } from '../model/refusal.js';

type ReceivedFile = Awaited<ReturnType<typeof receive>>;

const magic = '%PDF-';
/** Length of the part in which PDF readers search for it, bytes. */
const headLength = 1024;

/**
 * Reads and checks the form of a submission (interface 4.1) without keeping the file. Reads the whole body even if it is refused,
 * so that the client receives the response.
 */
export async function readUpload(request: FastifyRequest, maxFileBytes: number) {
  if (!request.isMultipart()) throw new Refusal(400, 'Die Anfrage muss als multipart/form-data gesendet werden.');
  const files: ReceivedFile[] = [];
  const types: string[] = [];
  try {
    const limits = { fileSize: maxFileBytes, parts: 100 };
    for await (const part of request.parts({ limits, throwFileSizeLimit: false } as {
      limits: typeof limits;
    }) as AsyncIterable<Multipart>) {
      if (part.type === 'file') files.push(await receive(part));
      else if (part.fieldname === 'documentType') types.push(String(part.value));
    }
  } catch {
    throw new Refusal(400, 'Der multipart-Inhalt ist fehlerhaft.');
  }
  const file = checkFiles(files);
  const documentType = types[0] ?? '';
  if (types.length > 1 || documentType === '') throw new Refusal(400, 'Der Dokumenttyp (Feld „documentType“) fehlt.');
  return { fileName: file.name, fileHash: file.hash, documentType };
}

async function receive(part: MultipartFile) {
  const hash = createHash('sha256');
  let head = Buffer.alloc(0);
  for await (const chunk of part.file as AsyncIterable<Buffer>) {
    hash.update(chunk);
    if (head.length < headLength) head = Buffer.concat([head, chunk]).subarray(0, headLength);
  }
  return {
    field: part.fieldname,
    name: part.filename,
    contentType: part.mimetype.toLowerCase(),
    hash: hash.digest('hex'),
    isPdf: head.includes(magic),
    tooLarge: part.file.truncated,
  };
}

function checkFiles(files: readonly ReceivedFile[]): ReceivedFile {
  const [file, ...others] = files;
  if (others.length > 0) throw new Refusal(400, 'Es darf nur genau eine PDF-Datei übermittelt werden.');
  if (file === undefined || file.field !== 'file')
    throw new Refusal(400, 'Es wurde keine PDF-Datei (Feld „file“) übermittelt.');
  if (file.tooLarge) throw new Refusal(400, 'Die Datei ist zu groß.');
  if (file.contentType !== 'application/pdf' || !file.isPdf) {
    throw new Refusal(400, 'Es werden nur PDF-Dateien (application/pdf) angenommen.');
  }
  return file;
}
