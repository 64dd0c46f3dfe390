/** How a check came out. `warning`: it works, and somebody should look at it. `skipped`: what it needs did not work. */
export type Outcome = 'ok' | 'warning' | 'failing' | 'skipped';

/** What one check found. No secrets, no document content. */
export interface Finding {
  /** What was checked, as people call it: `API key`. */
  readonly check: string;
  readonly outcome: Outcome;
  /** One line: what is fine, or what is wrong and how to mend it. */
  readonly message: string;
  /** SQL that mends it, ready to paste; for a person with more rights. */
  readonly statements?: readonly string[];
}

/** What was looked at: the answer, or what came in its way. */
export type Told<T> = { readonly value: T } | { readonly error: unknown };

/** Takes an error for an answer, so that other checks go on. */
export async function told<T>(work: Promise<T>): Promise<Told<T>> {
  try {
    return { value: await work };
  } catch (error) {
    return { error };
  }
}

/** What a check found, without its name. */
export type Verdict = Omit<Finding, 'check'>;

const verdict =
  (outcome: Outcome) =>
  (message: string, statements?: readonly string[]): Verdict => ({
    outcome,
    message,
    ...(statements && { statements }),
  });
export const ok = verdict('ok');
export const warning = verdict('warning');
export const failing = verdict('failing');
export const skipped = verdict('skipped');

/** Judges by each of the named checks, in their order. */
export function findingsOf<T>(checks: Readonly<Record<string, T>>, judge: (check: T) => Verdict): readonly Finding[] {
  return Object.entries(checks).map(([name, check]) => ({ check: name, ...judge(check) }));
}

/** Of our own errors: they name the remedy and hold no secret. Of others only that they happened. */
export function wordsOf(error: unknown): string {
  const { kind, message } = (error ?? {}) as { kind?: unknown; message?: unknown };
  return typeof kind === 'string' && typeof message === 'string' ? message : 'an unexpected error; please report it';
}
