import { readFile } from 'node:fs/promises';

/** A file beside the program, for whoever wants it without the emulator; it is written from the interface alone. */
const file = new URL('../../openapi/recognition-service.json', import.meta.url);

/** The OpenAPI description of the service, as JSON text. */
export function serviceDescription(): Promise<string> {
  return readFile(file, 'utf8');
}
