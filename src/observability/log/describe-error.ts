/** What a log shows of an error. */
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

const DEEPEST_CAUSE = 5;

/** Fields that are names or codes by their nature. */
const SHOWN = ['kind', 'sqlstate', 'constraint', 'code'] as const;

/**
 * The type, message and codes of an error and of its causes. Nothing else: PostgreSQL's `detail`, `where` and `hint`, the
 * query and its parameters echo document content, and so can the message of an error that PostgreSQL itself wrote.
 */
export function describeError(error: unknown, { stack = false } = {}, depth = 0): ErrorDescription {
  if (!(error instanceof Error)) return { type: typeof error, message: 'something was thrown that is no error' };
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
    ...(cause === undefined || depth >= DEEPEST_CAUSE ? {} : { cause: describeError(cause, { stack }, depth + 1) }),
    ...(stack && error.stack !== undefined ? { stack: framesOf(error.stack) } : {}),
  };
}

/** The stack without its head, which repeats the message. */
function framesOf(stack: string): string {
  return stack
    .split('\n')
    .filter((line) => /^ {4}at /.test(line))
    .join('\n');
}
