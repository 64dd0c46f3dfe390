/**
 * `leader`, `any`, `all`: kill -9 of the process that holds the feed, of any one, of all. `freeze`: the leader is stopped
 * until its lease has expired, and then resumed. `database`, `pooler`: kill -9 of PostgreSQL with all its processes, of PgBouncer.
 */
export type StepKind = 'leader' | 'any' | 'all' | 'freeze' | 'database' | 'pooler';

export interface Step {
  readonly kind: StepKind;
  /** Whether something is committed first. Otherwise it may hit processes that are only starting. */
  readonly afterCommit: boolean;
  readonly delayMs: number;
}

const WEIGHTS: Readonly<Record<StepKind, number>> = { leader: 50, any: 20, all: 8, freeze: 8, database: 6, pooler: 8 };
const LONGEST_DELAY_MS = 400;

/** What happens next, by chance. */
export function nextStep(random: () => number, pooler: boolean): Step {
  const kinds = (Object.keys(WEIGHTS) as StepKind[]).filter((kind) => pooler || kind !== 'pooler');
  let left = random() * kinds.reduce((sum, kind) => sum + WEIGHTS[kind], 0);
  const chosen = kinds.find((kind) => {
    left -= WEIGHTS[kind];
    return left < 0;
  });
  return { kind: chosen ?? 'leader', afterCommit: random() < 0.6, delayMs: Math.floor(random() * LONGEST_DELAY_MS) };
}
