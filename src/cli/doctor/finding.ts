/** The outcome of a check. `warning`: it works, but needs attention. `skipped`: a check that it depends on failed. */
export type CheckOutcome = 'ok' | 'warning' | 'failing' | 'skipped';

/** The result of one check, without secrets and document content. */
export interface Result {
  readonly outcome: CheckOutcome;
  /** One line: the confirmation, or the problem and its remedy. */
  readonly message: string;
  /** SQL statements that fix the problem, for a person with more privileges. */
  readonly statements?: readonly string[];
}

export interface Finding extends Result {
  /** Name of the check for people, such as `API key`. */
  readonly check: string;
}

const result =
  (outcome: CheckOutcome) =>
  (message: string, statements?: readonly string[]): Result => ({
    outcome,
    message,
    ...(statements && { statements }),
  });
export const ok = result('ok');
export const warning = result('warning');
export const failing = result('failing');
export const skipped = result('skipped');

/** Checks by name, in the order of their findings. A check can reject with an error. */
export type Checks<Context> = Readonly<Record<string, (context: Context) => Result | Promise<Result>>>;

/** Runs the checks one after the other. A check that rejects is failing and does not stop the others. */
export async function runChecks<Context>(checks: Checks<Context>, context: Context): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  for (const [check, run] of Object.entries(checks)) {
    const found = await (async () => run(context))().catch((error) => failing(messageOf(error)));
    findings.push({ check, ...found });
  }
  return findings;
}

/**
 * Returns the message of an error of scanfeed, which names the remedy and contains no secret. Other errors are bugs, and their
 * messages may contain secrets.
 */
export function messageOf(error: unknown): string {
  const { kind, message } = (error ?? {}) as { kind?: unknown; message?: unknown };
  return typeof kind === 'string' && typeof message === 'string' ? message : 'an unexpected error; please report it';
}
