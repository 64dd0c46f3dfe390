import type { InvalidEntry } from '../../../src/observability/status-page/feed-list.js';
import type { StatusReport } from '../../../src/observability/status-page/status-report.js';
import { caughtUp, failing, readingHistory, type Shown, standingBy, starting } from './states.js';

/** One feed in each state that the list distinguishes, and many that are caught up or followed by another process. */
export function manyFeeds(feeds = 1_000): readonly Shown[] {
  const [good, bad, busy, calm, unknown] = [caughtUp(), failing(), readingHistory(), standingBy(), starting()];
  const special = [
    named('gutmann-haus', bad, { pendingResults: 0, quarantinedEntries: 0 }),
    named('mueller-immobilien.de', bad, { lagSeconds: 190_000, pendingResults: 1_204 }),
    named('stadtwerke-kiel', good, { lagSeconds: 3_720, stuckSince: '2026-01-01T13:30:08.000Z' }),
    named('neue-genossenschaft', unknown, {}),
    named('hausverwaltung-leipzig', busy, {}),
    named('kanzlei_ost', good, { lagSeconds: 9.1, quarantinedEntries: 3 }),
    // The longest possible name.
    named('wohnungsgenossenschaft-leipzig-und-umgebung-gmbh-und-co.kg-2026', calm, { lagSeconds: 7.3 }),
  ];
  const others = Array.from({ length: Math.max(0, feeds - special.length) }, (_, at) => {
    const name = `organization-${String(at + 1).padStart(4, '0')}`;
    const lagSeconds = 1.2 + (at % 30) / 10;
    return at % 3 === 0
      ? named(name, good, { lagSeconds, pendingResults: at % 7 === 0 ? 1 : 0 })
      : named(name, calm, { lagSeconds: lagSeconds + 3, pendingResults: 0 });
  });
  return [...others, ...special].slice(-feeds);
}

/** An entry of a feed that does not run, and one of a feed that runs with its last valid entry. */
export const INVALID_ENTRIES: readonly InvalidEntry[] = [
  {
    name: 'bauverein-nord',
    mistakes: ['line 41: start: must be "beginning", "live" or a time', 'line 43: unknown key "interval"'],
  },
  { name: 'kanzlei_ost', mistakes: ['line 12: baseUrl: is not an http or https URL'] },
];

function named(feed: string, shown: Shown, changed: Partial<StatusReport>): Shown {
  return { ...shown, report: { ...shown.report, ...changed, feed } };
}
