export interface ErrorDescription {
  readonly type: string;
  readonly message: string;
  readonly kind?: string;
  readonly sqlstate?: string;
  readonly constraint?: string;
  readonly code?: string;
  readonly cause?: ErrorDescription;
  readonly stack?: string;
}

const MAX_CAUSES = 5;

/** Error fields that hold names or codes, never content. */
const SHOWN = ['kind', 'sqlstate', 'constraint', 'code'] as const;

/**
 * Returns the type, message and codes of an error and its causes. Everything else is left out: PostgreSQL's `detail`, `where`
 * and `hint`, the query and its parameters contain document content, and a message written by PostgreSQL may contain it.
 */
export function describeError(error: unknown, { stack = false } = {}, depth = 0): ErrorDescription {
  if (!(error instanceof Error)) return { type: typeof error, message: 'the thrown value is not an error' };
  const fields = error as Error & Partial<Record<(typeof SHOWN)[number] | 'severity', unknown>>;
  const fromPostgres = typeof fields.severity === 'string' && typeof fields.code === 'string';
  const codes = SHOWN.flatMap((name) => {
    const value = fields[name];
    if (typeof value !== 'string' || !/^[\w.:-]{1,63}$/.test(value)) return [];
    return [[name === 'code' && fromPostgres ? 'sqlstate' : name, value]];
  });
  const { cause } = error;
  return {
    type: error.name === 'Error' ? (error.constructor.name ?? 'Error') : error.name,
    message: fromPostgres ? 'PostgreSQL refused the statement' : error.message,
    ...Object.fromEntries(codes),
    ...(cause === undefined || depth >= MAX_CAUSES ? {} : { cause: describeError(cause, { stack }, depth + 1) }),
    ...(stack && error.stack !== undefined ? { stack: framesOf(error.stack) } : {}),
  };
}

/** Returns the stack without its first lines, which repeat the message. */
function framesOf(stack: string): string {
  return stack
    .split('\n')
    .filter((line) => /^ {4}at /.test(line))
    .join('\n');
}
