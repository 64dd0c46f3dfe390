import { type Mutant, type Patch, patch } from './mutant.js';

const engine = (name: string, ...patches: readonly Patch[]): Mutant => ({ name, tests: 'engine', patches });

const writePages = 'src/sync/writer/write-pages.ts';
const syncFeed = 'src/sync/sync-feed.ts';
const checkEntries = 'src/sync/page/check-entries.ts';
const fullResult = 'src/sync/results/full-result.ts';
const recover = 'src/sync/recovery/recover-cursor.ts';
const endOfFeed = 'src/sync/page/end-of-feed.ts';
const backoff = 'src/sync/retry/backoff.ts';
const freshnessClaims = 'src/sync/page/freshness-claims.ts';
const passPages = 'src/sync/passes/pass-pages.ts';
const processLease = 'src/sync/lease/process-lease.ts';
const feedShare = 'src/sync/lease/feed-share.ts';

/** Bugs of the engine: one to three for each promise, of the kinds that have happened. */
export const ENGINE_MUTANTS: readonly Mutant[] = [
  // Nothing is lost (promise 1).
  engine(
    'the cursor is stored before the rows',
    patch(
      writePages,
      ': store.commitPage({ ...move, ...content });',
      `: store
          .commitPage({ ...move, freshness: { ...move.freshness, end: 'no', completeUpTo: null, lastDeliveredAt: null }, batch: [], quarantine: [] })
          .then(() => store.commitPage({ ...move, from: move.to, ...content }));`,
    ),
  ),
  engine(
    'the start comes from the settings, not from the first start',
    patch(
      syncFeed,
      'const start: Position = position ?? (await store.readPosition(lease.feed));',
      `const stored = await store.readPosition(lease.feed);
       const { start: set } = context.settings.identity;
       const start: Position = { ...stored, since: set instanceof Date ? set : null };`,
    ),
  ),
  engine('the position is not read again after an unknown outcome', patch(syncFeed, '      position = null;\n', '')),

  engine(
    'a commit that overtakes the one before is given up',
    patch(writePages, "if (kind === 'committed' && isTooEarly) return statement();", ''),
  ),
  engine(
    'a page is committed while the one before may quarantine an entry',
    patch(writePages, 'isOrdinary(page) && begun.every((before) => before.isOrdinary)', 'isOrdinary(page)'),
  ),

  // The highest revision wins (promise 2).
  engine(
    'an older revision of a page is dropped before the newer one is checked',
    patch(
      checkEntries,
      'page.items.forEach((item, index) => {',
      `const runs = page.items as { scanId: string; revision: number }[];
       page.items.forEach((item, index) => {
         const { scanId, revision } = runs[index] ?? { scanId: '', revision: 0 };
         if (runs.some((other) => other?.scanId === scanId && other?.revision > revision)) return;`,
    ),
  ),
  engine(
    'an older result takes the place of a newer entry',
    patch(fullResult, "if (found.revision < revision) return pending('older_revision');", ''),
  ),

  // Truncated results get completed (promise 3).
  engine(
    'an entry whose result could not be loaded is called complete',
    patch(
      'src/sync/results/resolve-truncated.ts',
      "return withLoading('pending', withPending(entry, outcome.reason));",
      'return entry;',
    ),
  ),
  engine(
    'pending results are never tried again',
    patch('src/sync/results/retry-pending.ts', "if (due.length === 0) return 'done';", "return 'done';"),
  ),
  engine(
    'an answer without data is taken for the full result',
    patch(fullResult, "if (found.status === 'completed' && !found.hasData) return pending('still_truncated');", ''),
  ),
  engine(
    'the result of another scan is taken',
    patch(fullResult, "if (run.scanId !== scanId) return pending('invalid_result');", ''),
  ),

  // One bad entry never stops the feed, and only bad entries are quarantined (promise 5).
  engine(
    'unusable entries are dropped',
    patch(writePages, '[...page.quarantine, ...refused, ...originals]', '[...refused, ...originals]'),
  ),
  engine('refused entries are dropped', patch(writePages, '...page.quarantine, ...refused,', '...page.quarantine,')),
  engine(
    'a lost connection is taken for a bad entry',
    patch('src/core/errors.ts', "return classifyError(error).action === 'reject';", 'return true;'),
  ),

  // Memory is bounded (promise 11).
  engine(
    'the memory of committed pages is not released',
    patch(
      'src/sync/prefetch/prefetch-pages.ts',
      'return checkPage(received, () => release(ticket));',
      "return checkPage(received, () => { open.delete(ticket); changes.emit('change'); });",
    ),
  ),
  engine(
    'the memory of a page is released before it is committed',
    patch(writePages, 'const move = target.moveBy(page);', 'const move = target.moveBy(page);\n  page.release();'),
  ),
  engine(
    'a download in the background that waits blocks those of the feeds',
    patch('src/sync/memory/memory-budget.ts', 'background: 1e12', 'background: 0'),
  ),
  engine(
    'downloads that all wait for each other wait for ever',
    patch('src/sync/memory/memory-budget.ts', ' && !other.isWaiting', ''),
  ),
  engine(
    'several downloads exceed the budget at once',
    patch('src/sync/memory/memory-budget.ts', 'exceeding === null && isNext', 'isNext'),
  ),
  engine(
    'the limit is not halved',
    patch('src/sync/page/page-limit.ts', 'Math.max(1, Math.floor(entries / 2))', 'entries'),
  ),

  // One writer a feed (promise 6).
  engine(
    'a lost lease is not noticed',
    patch(
      'src/sync/lease/keep-lease.ts',
      'if (feed.holder !== lease.holder || feed.epoch !== lease.epoch) return;',
      '',
    ),
  ),
  engine(
    'a lease is renewed when it has expired',
    patch(processLease, 'const intervalMs = this.ttlMs / RENEWALS_PER_TTL;', 'const intervalMs = 1.1 * this.ttlMs;'),
  ),
  engine(
    'a process that lost its lease takes the feeds of others at once',
    patch(processLease, 'this.#takesFrom = askedAt + ttlMs;', ''),
  ),
  engine(
    'a process ends the leases of living ones when it joins',
    patch(processLease, ' && this.parts.isDead(other)', ''),
  ),
  engine(
    'a process keeps the feeds of a schema that it cannot read',
    patch(processLease, 'unusable: this.#unusable(askedAt)', 'unusable: []'),
  ),
  engine(
    'a process that has ended is not noticed until the next round',
    patch(
      'src/sync/lease/feed-leases.ts',
      "if (event === 'processes changed') this.readEarly();",
      "if (event === 'processes changed') return;",
    ),
  ),
  engine(
    'a process takes free feeds beyond its share at once',
    patch(feedShare, 'if (this.#led.size >= this.#limit()) {', 'if (this.#led.size < 0) {'),
  ),
  engine(
    'all surplus feeds are given back at once',
    patch(feedShare, 'const GIVEN_BACK = 0.1;', 'const GIVEN_BACK = 1;'),
  ),

  // It outlives outages (promise 7).
  engine(
    'failures are tried again without a pause',
    patch(
      backoff,
      'return requestedMs > 0 ? requestedMs + random * Math.min(bound, RETRY_AFTER_JITTER_MS) : random * bound;',
      'return 0;',
    ),
  ),
  engine('Retry-After is ignored', patch(backoff, 'Math.min(retryAfterMs, MAX_RETRY_AFTER_MS)', '0')),
  engine(
    'cursors that go in circles are followed without a pause',
    patch(endOfFeed, 'circles || isDeadEnd(page)', 'isDeadEnd(page)'),
  ),

  // A rejected cursor heals (promise 8).
  engine(
    'after a rejected cursor the feed goes on from now',
    patch(
      recover,
      '?? overlap ?? { cursor: null, since: null };',
      '?? { cursor: null, since: new Date(context.clock.now()) };',
    ),
  ),
  engine(
    'wrong settings are taken for a rejected cursor',
    patch(
      recover,
      'throw cursorRejection(error) === null ? error : refusal;',
      'if (cursorRejection(error) === null) throw error; return null;',
    ),
  ),
  engine(
    'a cursor counts as rejected without being refused again',
    patch(
      recover,
      'await listsAnything(context.service, probeOf({ cursor }, context), signal);\n    return false;',
      'return true;',
    ),
  ),
  engine(
    'runs that the cursor passed by are taken for those of another organization',
    patch(recover, 'if (stored.length === 0) return true;', ''),
  ),

  // What the cursor skipped is found (promise 9).
  engine(
    "a pass moves the feed's cursor",
    patch(
      passPages,
      'this.#move(page);',
      `this.#move(page);
       this.context.store.readPosition(this.lease.feed)
         .then(({ cursor }) => this.context.store.movePosition(this.lease, cursor, { cursor: page.next, since: null }))
         .catch(() => {});`,
    ),
  ),
  engine(
    'a pass ends at a page that the filters emptied',
    patch(
      passPages,
      'reachesBeyond(page, this.#pass.until);',
      '(reachesBeyond(page, this.#pass.until) || page.items === 0);',
    ),
  ),

  // Freshness is knowable (promise 10).
  engine(
    'behind the end, freshness is the time of the poll',
    patch(
      freshnessClaims,
      'Math.min(page.monotonicTimeOf(provenUpTo), provenUpTo.getTime() - aheadMs) - 1',
      'polledAt',
    ),
  ),
  engine(
    'a correction shows how far the feed was read',
    patch('src/sync/page/check-page.ts', 'if (revision === 1 && ', 'if ('),
  ),
  engine(
    'an empty page is the end of the feed, whatever the filters hide',
    patch(endOfFeed, 'listed.items > 0) return null;', 'listed.items > 0) return IS_LAST;'),
  ),
  engine(
    'a full page whose cursor stands still is the end',
    patch(endOfFeed, '= items < limit &&', '= items <= limit &&'),
    patch(endOfFeed, 'listed.items < page.limit &&', 'listed.items <= page.limit &&'),
  ),
  engine(
    'a filter by any text is taken for none',
    patch(
      'src/core/feed-filters.ts',
      'if (included === null) return others.map(',
      'if (included === null) return [].map(',
    ),
  ),
  engine(
    'a page without a cursor that the filters shortened is the end',
    patch(endOfFeed, '(hidesNothing(filters) || ', '(filters !== null || '),
  ),
  engine(
    'a repeated page that brings something new is the end',
    patch(endOfFeed, "? 'ifNothingNew' : 'no'", "? 'yes' : 'no'"),
  ),
  engine(
    'the clock of delivery times is taken for another',
    patch(
      freshnessClaims,
      'page.monotonicTimeOf(provenUpTo), provenUpTo.getTime() - aheadMs)',
      'page.monotonicTimeOf(provenUpTo))',
    ),
  ),

  // Passes.
  engine(
    'a pass ends at an entry beyond its end, although the page is not sorted',
    patch(
      passPages,
      'reachesBeyond(page, this.#pass.until);',
      'page.entries.some(({ accepted }) => (accepted.run.deliveredAt ?? this.#pass.until) > this.#pass.until);',
    ),
  ),
  engine(
    'the history of another organization is mixed in',
    patch(
      recover,
      'if (!(await isSameOrganization(runs, since, deliveredUpTo, feed, context, signal))) throw refusal;',
      '',
    ),
  ),
  engine(
    'a pass keeps its rejected cursor when a page has none',
    patch(passPages, 'const to = page.next ?? page.at.cursor;', 'const to = page.next ?? from;'),
  ),
];
