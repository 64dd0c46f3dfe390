import type pg from 'pg';

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
  const parameters = values.map((value, index) => {
    return parameter(isLong(value) ? value : (valueMapper?.(value, index) ?? null));
  });
  const body = [
    text(portal ?? ''),
    text(statement ?? ''),
    int16(parameters.length, ...parameters.map(({ isBinary }) => Number(isBinary))),
    int16(parameters.length),
    ...parameters.flatMap(({ length, pieces }) => [int32(length), ...pieces]),
    int16(1, Number(binary ?? false)),
  ];
  const length = body.reduce((sum, piece) => sum + piece.length, 4);
  return [Buffer.from('B'), int32(length), ...body];
}

interface Parameter {
  readonly isBinary: boolean;
  /** -1 for null. */
  readonly length: number;
  readonly pieces: readonly Uint8Array[];
}

function parameter(value: LongParameter | string | Buffer | null | undefined): Parameter {
  if (value === null || value === undefined) return { isBinary: false, length: -1, pieces: [] };
  if (value instanceof LongParameter) return { isBinary: true, length: value.length, pieces: value.pieces };
  const bytes = Buffer.from(value);
  return { isBinary: typeof value !== 'string', length: bytes.length, pieces: [bytes] };
}

function text(value: string): Buffer {
  return Buffer.from(`${value}\0`);
}

function int16(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(2 * values.length);
  values.forEach((value, index) => {
    bytes.writeInt16BE(value, 2 * index);
  });
  return bytes;
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}
