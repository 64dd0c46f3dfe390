import type pg from 'pg';
import { createWriter, NULL, type Writer } from './binary-writer.js';

/**
 * A parameter in PostgreSQL's binary form, in pieces that are never concatenated: `pg` copies each parameter into a growing
 * message, which takes 50 MB for a parameter of 20 MB. See `sendLongParameters`.
 */
export class LongParameter {
  constructor(readonly pieces: readonly Uint8Array[]) {}

  get length(): number {
    return this.pieces.reduce((sum, piece) => sum + piece.length, 0);
  }

  /** Called by `pg` if it builds the message itself, as for short parameters. */
  toPostgres(): Buffer {
    return Buffer.concat(this.pieces);
  }
}

/** Minimum length of a parameter that is sent in pieces, bytes. Copying shorter ones is faster. */
const LONG_BYTES = 256 * 1024;

type BindConfig = NonNullable<Parameters<pg.Connection['bind']>[0]>;

/** Makes a connection send long parameters piece by piece, without copying them. */
export function sendLongParameters(connection: pg.Connection): void {
  const bind = connection.bind.bind(connection);
  connection.bind = (config, more) => {
    if (config === null || !config.values?.some(isLong)) return bind(config, more);
    if (connection.stream.writable) for (const piece of bindMessage(config)) connection.stream.write(piece);
  };
}

function isLong(value: unknown): value is LongParameter {
  return value instanceof LongParameter && value.length >= LONG_BYTES;
}

/** Builds the Bind message of PostgreSQL's protocol (3.0, "Message Formats"). */
function bindMessage({ portal, statement, values = [], binary, valueMapper }: BindConfig): readonly Uint8Array[] {
  const parameters = values.map((value, index) => (isLong(value) ? value : (valueMapper?.(value, index) ?? null)));
  const body = createWriter();
  body.bytes([Buffer.from(`${portal ?? ''}\0${statement ?? ''}\0`)]);
  body.int16(parameters.length);
  for (const parameter of parameters) body.int16(Number(typeof parameter === 'object' && parameter !== null));
  body.int16(parameters.length);
  for (const parameter of parameters) writeParameter(parameter, body);
  body.int16(1);
  body.int16(Number(binary ?? false));
  const pieces = body.pieces();
  const head = createWriter();
  head.bytes([Buffer.from('B')]);
  head.int32(pieces.reduce((sum, piece) => sum + piece.length, 4));
  return [...head.pieces(), ...pieces];
}

function writeParameter(value: LongParameter | string | Buffer | null, writer: Writer): void {
  if (value === null) writer.int32(NULL);
  else if (typeof value === 'string') writer.text(value);
  else {
    writer.int32(value.length);
    writer.bytes(value instanceof LongParameter ? value.pieces : [value]);
  }
}
