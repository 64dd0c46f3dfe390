import { createFeedState, type FeedState } from '../../../src/observability/feed-state.js';
import { createRecentHistory } from '../../../src/observability/status-page/recent-history.js';
import type { StatusPage } from '../../../src/observability/status-page/status-page.js';
import type { StatusReport } from '../../../src/observability/status-page/status-report.js';
import { handClock } from '../observed.js';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
/** How often the loop says something. */
const BEAT = 10 * SECOND;
const OUTAGE = { from: 3.4 * HOUR, until: 3.65 * HOUR };

/** What the status page is about to show. */
export type Shown = Omit<StatusPage, 'listed'>;

/** The page in every state that people see it in, with six hours of a life behind it. */
export const STATES: Readonly<Record<string, () => Shown>> = {
  'caught up': caughtUp,
  'reading a history': readingHistory,
  failing: failing,
  'standing by': standingBy,
  starting,
};

/** The first hour led by another process, later an outage of a quarter of an hour. */
export function caughtUp(): Shown {
  const life = begin();
  live(life, 6 * HOUR, ({ passed, state, history, knows }) => {
    if (passed >= 50 * MINUTE) state.setLeader(() => Number.POSITIVE_INFINITY);
    if (passed >= OUTAGE.from && passed < OUTAGE.until) return history.failed();
    const busy = passed < OUTAGE.until || passed > OUTAGE.until + 3 * MINUTE ? 1 : 9;
    knows(900 + 700 * wave(passed, 7));
    if (passed >= 50 * MINUTE) history.wrote(Math.round(busy * (4 + 3 * wave(passed, 97) + 2 * wave(passed, 5))));
  });
  return life.end({ ...QUIET, lagSeconds: 1.2, dataCompleteAsOf: life.ago(1.2 * SECOND) });
}

export function readingHistory(): Shown {
  const life = begin();
  live(life, 40 * MINUTE, ({ passed, state, history, knows }) => {
    state.setLeader(() => Number.POSITIVE_INFINITY);
    knows(26 * 24 * HOUR * (1 - passed / (55 * MINUTE)));
    history.wrote(Math.round(9_000 + 1_500 * wave(passed, 11)));
  });
  const complete = life.ago(612_000 * SECOND);
  return life.end({
    ...QUIET,
    startedAt: life.ago(40 * MINUTE),
    caughtUp: false,
    initialSyncComplete: false,
    dataCompleteAsOf: complete,
    lagSeconds: 612_000,
    passes: [{ pass: 'feed', entries: 2_160_000, deliveredUpTo: complete, entriesPerSecond: 977.4, secondsLeft: 903 }],
  });
}

/** Asleep for half an hour, and then unable to read. */
export function failing(): Shown {
  const life = begin();
  live(life, 2.5 * HOUR, ({ passed, state, history, knows }) => {
    if (passed > 60 * MINUTE && passed < 90 * MINUTE) return;
    state.setLeader(() => Number.POSITIVE_INFINITY);
    if (passed > 2.1 * HOUR) return history.failed();
    knows(1_000 + 800 * wave(passed, 7));
    history.wrote(Math.round(5 + 4 * wave(passed, 97)));
  });
  return life.end({
    ...QUIET,
    caughtUp: false,
    lagSeconds: 1_441,
    dataCompleteAsOf: life.ago(1_441 * SECOND),
    startedAt: life.ago(2.5 * HOUR),
    pendingResults: 12,
    quarantinedEntries: 3,
    currentErrors: [
      {
        stage: 'feed',
        kind: 'http_401',
        message:
          'the delivery feed (GET /scans/feed) returned 401: the API key is not accepted; correct SCANFEED_API_KEY; the service says: "Ungültiger API-Schlüssel."',
        since: life.ago(1_440 * SECOND),
        failures: 63,
        held: true,
        runbook: 'ScanfeedAuthenticationFailing',
        nextTryAt: life.ago(-12 * SECOND),
      },
    ],
  });
}

export function standingBy(): Shown {
  const life = begin();
  live(life, 6 * HOUR, ({ passed, knows }) => knows(4_000 + 4_000 * wave(passed, 13)));
  return life.end({
    ...QUIET,
    role: 'standby',
    caughtUp: false,
    lagSeconds: 6.4,
    dataCompleteAsOf: life.ago(6_400),
    leaseHolder: 'recognition-sync-7d9f6c5b8-x2x7k/1/8c1f02de',
  });
}

export function starting(): Shown {
  const life = begin();
  live(life, BEAT, ({ history }) => history.awake());
  return life.end({
    ...QUIET,
    role: 'starting',
    caughtUp: false,
    initialSyncComplete: false,
    dataCompleteAsOf: null,
    lagSeconds: null,
    lastPollAt: null,
    lastCommitAt: null,
    lastDeliveredAt: null,
    leaseHolder: null,
    pendingResults: null,
    quarantinedEntries: null,
    runsWithoutData: null,
    startedAt: life.ago(3 * SECOND),
  });
}

const QUIET: Omit<StatusReport, 'dataCompleteAsOf' | 'lagSeconds' | 'runsWritten'> = {
  feed: 'invoices',
  version: '0.1.0',
  startedAt: '2026-01-01T08:32:08.000Z',
  role: 'leader',
  leaseHolder: 'recognition-sync-7d9f6c5b8-m4q2v/1/3be7beef',
  caughtUp: true,
  initialSyncComplete: true,
  lastPollAt: '2026-01-01T14:32:06.000Z',
  lastCommitAt: '2026-01-01T14:31:51.000Z',
  lastDeliveredAt: '2026-01-01T14:31:50.000Z',
  stuckSince: null,
  acceptsBadUntil: null,
  passes: [],
  pendingResults: 2,
  quarantinedEntries: 0,
  runsWithoutData: 0,
  currentErrors: [],
};

interface Life {
  readonly state: FeedState;
  readonly history: ReturnType<typeof createRecentHistory>;
  readonly clock: ReturnType<typeof handClock>;
  ago(ms: number): string;
  end(report: Omit<StatusReport, 'runsWritten'>): Shown;
}

const END = Date.UTC(2026, 0, 1, 14, 32, 8);

function begin(): Life {
  const clock = handClock();
  const state = createFeedState({ monotonic: clock.monotonic, pollIntervalMs: 5_000, requestTimeoutMs: 30_000 });
  const history = createRecentHistory(clock, state);
  return {
    state,
    history,
    clock,
    ago: (ms) => new Date(END - ms).toISOString(),
    end: (report) => {
      const recent = history.minutes();
      const runsWritten = recent.reduce((sum, { runs }) => sum + (runs ?? 0), 0);
      return { report: { ...report, runsWritten }, recent, now: END };
    },
  };
}

interface Beat {
  /** Milliseconds since it began. */
  readonly passed: number;
  readonly state: FeedState;
  readonly history: Life['history'];
  /** The lag is so many milliseconds. */
  knows(lagMs: number): void;
}

/** Lives so long, up to the end. */
function live({ clock, state, history }: Life, ms: number, each: (beat: Beat) => void): void {
  clock.advance(END - clock.now() - ms);
  for (let passed = 0; passed < ms; passed += BEAT) {
    clock.advance(BEAT);
    each({
      passed,
      state,
      history,
      knows: (lagMs) => {
        history.awake();
        state.setFreshness({ readAt: clock.monotonic(), lagMs, dataCompleteAsOf: new Date(0) });
        history.awake();
      },
    });
  }
}

/** Between 0 and 1, up and down in so many minutes. */
function wave(passed: number, minutes: number): number {
  return (1 + Math.sin((2 * Math.PI * passed) / (minutes * MINUTE))) / 2;
}
