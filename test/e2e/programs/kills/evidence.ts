import type { Emulator } from '../../../../src/emulator/index.js';
import type { DatabaseView } from './database-view.js';
import type { Feed } from './feeds.js';

/** What was found against the promises; empty lists are good. */
export interface Findings {
  /** Delivered, and not in the database, or at a lower revision than delivered. */
  readonly lost: readonly string[];
  /** In the database, and never delivered so. */
  readonly invented: readonly string[];
  /** Stored before, and now neither current nor in the history. */
  readonly vanished: readonly string[];
  /** Rows that contradict each other. */
  readonly contradictions: readonly string[];
  readonly runs: number;
  readonly superseded: number;
}

interface StoredRun {
  readonly scan_id: string;
  readonly revision: number;
  readonly status: string;
}

/** Remembers what was stored, to see that it stays. */
export class Evidence {
  #seen: ReadonlySet<string> = new Set();

  constructor(
    private readonly emulator: Emulator,
    private readonly feeds: readonly Feed[],
    private readonly view: DatabaseView,
  ) {}

  /** To be asked when the feed is quiet and its freshness says that everything up to now is stored. */
  async examine(): Promise<Findings> {
    const delivered = newestOf(this.emulator, this.feeds);
    const current = await this.view.rows<StoredRun>('SELECT scan_id, revision, status FROM scanfeed.runs');
    const stored = new Map(current.map((run) => [run.scan_id, run]));
    const lost = [...delivered].flatMap(([scanId, wanted]) => {
      const found = stored.get(scanId);
      if (found === undefined) return [`${scanId}: revision ${wanted.revision} is missing`];
      return found.revision < wanted.revision
        ? [`${scanId}: revision ${found.revision} instead of ${wanted.revision}`]
        : [];
    });
    const invented = current.flatMap(({ scan_id: scanId, revision, status }) => {
      const wanted = delivered.get(scanId);
      return wanted?.revision === revision && wanted.status === status
        ? []
        : [`${scanId}: revision ${revision} ${status}`];
    });
    const { all, superseded, vanished } = await this.#compare();
    this.#seen = all;
    return {
      lost,
      invented: invented.filter((text) => !lost.some((other) => other.startsWith(text.slice(0, 36)))),
      vanished,
      contradictions: await this.#contradictions(),
      runs: current.length,
      superseded,
    };
  }

  /** Notes what is committed now, to be looked for after a crash. */
  async note(): Promise<void> {
    this.#seen = (await this.#compare()).all;
  }

  /** What was noted and is no longer there. */
  async vanished(): Promise<readonly string[]> {
    return (await this.#compare()).vanished;
  }

  async #compare() {
    const rows = await this.view.rows<{ run: string; old: boolean }>(`
      SELECT scan_id || ' ' || revision AS run, false AS old FROM scanfeed.runs
      UNION ALL SELECT scan_id || ' ' || revision, true FROM scanfeed.run_history`);
    const all = new Set(rows.map(({ run }) => run));
    return {
      all,
      superseded: rows.filter(({ old }) => old).length,
      vanished: [...this.#seen].filter((run) => !all.has(run)),
    };
  }

  async #contradictions(): Promise<readonly string[]> {
    const [row] = await this.view.rows<Record<string, number>>(`
      SELECT
        (SELECT count(*)::int FROM scanfeed.run_history AS old LEFT JOIN scanfeed.runs AS run USING (scan_id)
          WHERE run.revision IS NULL OR old.revision >= run.revision) AS "history that is not older than its run",
        (SELECT count(*)::int FROM scanfeed.run_history WHERE superseded_at < synced_at)
          AS "history superseded before it was stored",
        (SELECT count(*)::int - count(DISTINCT change_seq)::int FROM scanfeed.runs) AS "change numbers drawn twice",
        (SELECT count(*)::int FROM scanfeed.quarantine) AS "entries in quarantine"`);
    return Object.entries(row ?? {}).flatMap(([what, count]) => (count === 0 ? [] : [`${count} × ${what}`]));
  }
}

/** The newest revision of each scan that the feeds hold. */
function newestOf(
  emulator: Emulator,
  feeds: readonly Feed[],
): ReadonlyMap<string, { readonly revision: number; readonly status: string }> {
  const newest = new Map<string, { readonly revision: number; readonly status: string }>();
  for (const content of feeds.flatMap(({ organization }) => [...emulator.entries(organization)])) {
    if (!('version' in content)) continue;
    const { scanId, revision, status } = content.version;
    if ((newest.get(scanId)?.revision ?? 0) < revision) newest.set(scanId, { revision, status });
  }
  return newest;
}
