import { type Mutant, type Patch, patch } from './mutant.js';

const engine = (name: string, ...patches: readonly Patch[]): Mutant => ({ name, tests: 'engine', patches });

const syncPage = 'src/sync/sync-page.ts';
const loop = 'src/sync/loop.ts';
const readPage = 'src/sync/read-page.ts';
const pageDraft = 'src/sync/page-draft.ts';
const fullResult = 'src/sync/full-result.ts';
const writePage = 'src/sync/write-page.ts';
const isolate = 'src/sync/isolate-refused.ts';
const recover = 'src/sync/recover-cursor.ts';
const sweep = 'src/sync/sweep-stretch.ts';
const endOfFeed = 'src/sync/end-of-feed.ts';
const backoff = 'src/sync/backoff.ts';
const serviceClock = 'src/sync/service-clock.ts';
const backfill = 'src/sync/backfill.ts';
const backfillPages = 'src/sync/backfill-pages.ts';
const modelBackfills = 'test/simulation/model-backfills.ts';
const modelStore = 'test/simulation/model-store.ts';
const modelRows = 'test/simulation/model-rows.ts';

/** Bugs of the engine, and of the model of the store. */
export const ENGINE_MUTANTS: readonly Mutant[] = [
  // Nothing is lost (promise 1).
  engine(
    'the cursor is stored before the rows',
    patch(
      syncPage,
      '? { ...position, freshness, batch, quarantine }',
      `? (await store.commitPage({ ...position, freshness: null, batch: batchOf([], null), quarantine: [] }),
         { ...position, from: position.to, freshness, batch, quarantine })`,
    ),
  ),
  engine(
    'the cursor is stored without the rows',
    patch(
      syncPage,
      '? { ...position, freshness, batch, quarantine }',
      '? { ...position, freshness, batch: batchOf([], null), quarantine }',
    ),
  ),
  engine(
    'the cursor goes with the first part of a page',
    patch(
      syncPage,
      '{ ...position, to: at.cursor, freshness: null, batch, quarantine }',
      '{ ...position, freshness: null, batch, quarantine }',
    ),
  ),
  engine('an empty cursor is stored', patch(syncPage, 'to: next ?? at.cursor };', "to: next ?? '' };")),
  engine(
    'the start comes from the settings, not from the first start',
    patch(
      loop,
      'const start = await store.readPosition(lease.feed);',
      `const stored = await store.readPosition(lease.feed);
       const { start: set } = context.identity;
       const start = { ...stored, since: set instanceof Date ? set : null };`,
    ),
  ),
  engine(
    'the position is not read again after an unknown outcome',
    patch(loop, 'let failures = 0;', 'let failures = 0; let read: Position | undefined;'),
    patch(
      loop,
      'const start = await store.readPosition(lease.feed);',
      'const start = (read ??= await store.readPosition(lease.feed));',
    ),
  ),
  engine(
    'of pages that are committed together the first alone is stored',
    patch(
      'src/sync/join-pages.ts',
      'entries: pages.flatMap((page) => page.resolved.entries)',
      'entries: first.resolved.entries',
    ),
  ),
  engine(
    'pages are committed together although entries of them are quarantined',
    patch('src/sync/join-pages.ts', ' && draft.quarantine.length === 0', ''),
    patch(
      'src/sync/join-pages.ts',
      'const asReceived = draft.items === resolved.entries.length && ',
      'const asReceived = ',
    ),
  ),
  engine(
    'pages are handed out in another order than they were read',
    patch('src/sync/read-ahead.ts', 'const [first] = held;', 'const first = held.at(-1);'),
  ),
  engine(
    'pages that wait for a commit are not announced',
    patch('src/sync/read-ahead.ts', 'options.announce(completed.draft);', '{}'),
  ),
  engine(
    'the page that is to be committed next is announced as well',
    patch('src/sync/read-ahead.ts', 'held.indexOf(entry) >= handedOut', 'held.indexOf(entry) >= 0'),
  ),

  // The highest revision wins (promise 2).
  engine(
    'an older revision of a page is dropped before the newer one is checked',
    patch(
      pageDraft,
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
  engine(
    'the same revision is written again (model)',
    patch(modelRows, 'row.revision > known.revision) {', 'row.revision >= known.revision) {'),
  ),
  engine(
    'a stored result gives way to a truncated one (model)',
    patch(modelRows, 'if (!fuller || row.status !== known.status) return', 'if (row.status !== known.status) return'),
    patch(modelRows, 'known.data ??= row.data;', 'known.data = row.data;'),
  ),
  engine(
    'stored markdown is lost at the same revision (model)',
    patch(modelRows, 'if (!fuller || row.status !== known.status) return', 'if (row.status !== known.status) return'),
    patch(modelRows, 'known.markdown ??= row.markdown;', 'known.markdown = row.markdown;'),
  ),

  // Truncated results get completed (promise 3).
  engine(
    'an entry whose result could not be loaded is called complete',
    patch('src/sync/resolve-truncated.ts', 'ready.push(pendingEntry(entry, result.reason))', 'ready.push(entry)'),
  ),
  engine(
    'pending results are never tried again',
    patch('src/sync/retry-pending.ts', "if (due.length === 0) return 'done';", "return 'done';"),
  ),
  engine(
    'pending results take every connection there is',
    patch('src/sync/retry-pending.ts', 'new PQueue({ concurrency: context.resultCommits })', 'new PQueue()'),
  ),
  engine(
    'a result that cannot be stored lets the failed tries of others be forgotten',
    patch(
      'src/sync/retry-pending.ts',
      'const failed = outcomes.filter(',
      "const failed = tries.some(({ status }) => status === 'rejected') ? [] : outcomes.filter(",
    ),
  ),
  engine(
    'pending results are tried again after a month',
    patch('src/sync/retry-pending.ts', 'return Math.min(HOUR_MS, firstMs', 'return Math.max(30 * DAY_MS, firstMs'),
  ),
  engine(
    'a result that is truncated too is taken for the full one',
    patch(fullResult, "if (empty || needsFullResult(found, markdown)) return pending('still_truncated');", ''),
  ),
  engine(
    'the result of another scan is taken',
    patch(fullResult, "if (run.scanId !== scanId) return pending('invalid_result');", ''),
  ),
  engine(
    'a result of the other status is taken',
    patch(fullResult, 'found.revision === revision && status !== undefined && found.status !== status', 'false'),
  ),
  engine(
    'what is stored in full is downloaded again',
    patch(
      fullResult,
      'return stored.revision > run.revision || (stored.complete',
      'return stored.revision > run.revision && (stored.complete',
    ),
  ),
  engine(
    'that a run has no markdown is forgotten',
    patch(fullResult, 'draft: markdown && !found.hasMarkdown ? withoutMarkdown(draft) : draft', 'draft'),
  ),
  engine(
    'a run that has markdown is said to have none',
    patch(fullResult, 'markdown && !found.hasMarkdown ?', 'markdown ?'),
  ),
  engine(
    'what is not stored in full is not downloaded',
    patch(fullResult, '(stored.complete && (stored.markdownKnown || !markdown))', 'true'),
  ),

  // One bad entry never stops the feed, and only bad entries are quarantined (promise 5).
  engine(
    'unusable entries are dropped',
    patch(writePage, '[...draft.quarantine, ...originalsOf(last)', '[...originalsOf(last)'),
  ),
  engine('refused entries are dropped', patch(isolate, '[...quarantine, ...parts.refused]', 'quarantine')),
  engine(
    'a lost connection is taken for a bad entry',
    patch(
      isolate,
      "if (troubleOf(error).remedy !== 'data' || entries.length === 0) throw error;",
      'if (entries.length === 0) throw error;',
    ),
    patch(isolate, "if (troubleOf(error).remedy === 'data') return null;\n    throw error;", 'return null;'),
  ),
  engine(
    'an entry is quarantined for the result that was loaded for it',
    patch(
      pageDraft,
      'if (result.deliveredAt !== null || deliveredAt === null) return { ...result, fallback };',
      'if (result.deliveredAt !== null || deliveredAt === null) return result;',
    ),
    patch(pageDraft, '    ...result,\n    fallback,\n', '    ...result,\n'),
  ),

  // Memory is bounded (promise 11).
  engine(
    'a page in parts gives its cursor with the first',
    patch(writePage, 'if (rest === null) return writeRest(', 'if (true) return writeRest('),
  ),
  engine(
    'what there was no room for is committed as it came',
    patch(
      'src/sync/resolve-truncated.ts',
      "else if (result.kind === 'no_room') left.set(entry, result);",
      "else if (result.kind === 'no_room') ready.push(entry);",
    ),
  ),
  engine(
    'what is committed is not given back',
    patch('src/sync/resolve-truncated.ts', 'for (const holding of holdings) holding.release();', ''),
  ),
  engine('the limit is not halved', patch('src/sync/page-limit.ts', 'Math.max(1, Math.floor(entries / 2))', 'entries')),
  engine(
    'pages of a feed that was left are not given back',
    patch('src/sync/read-ahead.ts', 'for (const { room } of held) room.close();', ''),
  ),

  // One writer a feed (promise 6).
  engine(
    'the cursor is not part of the fence (model)',
    patch(modelStore, 'if (feed === null || feed.cursor !== commit.from) return', 'if (feed === null) return'),
  ),
  engine(
    'the epoch is not checked (model)',
    patch(modelStore, 'feed !== undefined && feed.epoch === lease.epoch ? feed', 'feed !== undefined ? feed'),
  ),
  engine(
    'a lost lease is not noticed',
    patch(loop, "if (reached === 'fenced' && !(await store.renewLease(lease, context.leaseTtlMs))) return;", ''),
    patch(
      'src/sync/keep-lease.ts',
      'if (!(await store.renewLease(lease, leaseTtlMs))) return works(); // lost, and not kept from us',
      'await store.renewLease(lease, leaseTtlMs);',
    ),
  ),
  engine('the lease is not given back', patch(loop, 'await store.releaseLease(lease).catch(() => {});', '')),

  // It outlives outages (promise 7).
  engine(
    'failures are tried again without a pause',
    patch(backoff, 'return floor > 0 ? floor + random * Math.min(bound, 1000) : random * bound;', 'return 0;'),
  ),
  engine('Retry-After is ignored', patch(backoff, 'Math.min(trouble.retryAfterMs ?? 0, RETRY_AFTER_CAP_MS)', '0')),
  engine(
    'pauses grow without end',
    patch(
      backoff,
      'Math.min(maxMs, firstMs * 2 ** Math.min(failures - 1, 30))',
      'firstMs * 2 ** Math.min(failures - 1, 30)',
    ),
  ),
  engine(
    'cursors that go in circles are followed without a pause',
    patch(loop, "progress === 'more' && circles ? 'stuck'", "progress === 'more' && false ? 'stuck'"),
  ),
  engine(
    'a sweep follows cursors that go in circles without end',
    patch(sweep, "if (recent.seen(swept.next)) return 'stuck';", ''),
  ),

  // A rejected cursor heals (promise 8).
  engine(
    'after a rejected cursor the feed goes on from now',
    patch(recover, '?? { cursor: null, since };', '?? { cursor: null, since: new Date(context.clock.now()) };'),
  ),
  engine(
    'a rejected cursor is asked for without end',
    patch(recover, "position.cursor !== null && troubleOf(error).kind === 'http_400'", 'false'),
  ),
  engine(
    'wrong settings are taken for a rejected cursor',
    patch(
      recover,
      "throw troubleOf(error).kind === 'http_400' ? refusal : error;",
      "if (troubleOf(error).kind !== 'http_400') throw error; return null;",
    ),
  ),
  engine(
    'runs that the cursor passed by are taken for those of another organization',
    patch(recover, 'if (stored.length === 0) return true;', ''),
  ),
  engine(
    'runs that only widened filters list are taken for those of another organization',
    patch(recover, "answers.every((answer) => answer === 'not_found')", 'true'),
  ),

  // What a cursor passed by is found (promise 9).
  engine(
    "a sweep moves the feed's cursor",
    patch(
      sweep,
      "const outcome = await commitSwept(page, room, sweep, progress === 'through', lease, context, signal);",
      `const outcome = await commitSwept(page, room, sweep, progress === 'through', lease, context, signal);
       const { cursor } = await context.store.readPosition(lease.feed);
       await context.store.movePosition(lease, cursor, { cursor: page.next, since: null }, 'rejected');`,
    ),
  ),
  engine('a sweep quarantines whatever comes', patch(sweep, 'breaker.check(quality);', '')),
  engine('a sweep ends after its first page', patch(sweep, "? 'stuck' : 'more';", "? 'stuck' : 'through';")),
  engine(
    'a sweep ends at a page that the filters emptied',
    patch(
      sweep,
      'if (await isEndOfFeed(page, read.filters, service, signal)) return',
      'if (page.draft.items === 0) return',
    ),
  ),
  engine(
    'a sweep whose cursor leads nowhere is called finished',
    patch(sweep, "? 'stuck' : 'more';", "? 'through' : 'more';"),
  ),

  // Freshness is knowable (promise 10).
  engine(
    'behind the end, freshness is the time of the poll',
    patch(readPage, 'page.instantOf(lastDeliveredAt) - 1', 'page.polledAt'),
  ),
  engine(
    'freshness reaches to the very time of the last entry',
    patch(readPage, 'page.instantOf(lastDeliveredAt) - 1', 'page.instantOf(lastDeliveredAt)'),
  ),
  engine(
    'a part of a page says how fresh the feed is',
    patch(
      syncPage,
      '{ ...position, to: at.cursor, freshness: null, batch, quarantine }',
      '{ ...position, to: at.cursor, freshness, batch, quarantine }',
    ),
  ),
  engine(
    'an empty page is the end of the feed, whatever the filters hide',
    patch(endOfFeed, 'return !more;', 'return true;'),
  ),
  engine(
    'a full page whose cursor stands still is the end',
    patch(endOfFeed, 'items === 0 || items >= page.limit ||', 'items === 0 ||'),
  ),
  engine(
    'a circle of pages that are committed together is the end',
    patch(endOfFeed, 'if (page.through.length > 1 || ', 'if ('),
  ),
  engine('an end is never seen with cursors that always change', patch(endOfFeed, 'return !more;', 'return false;')),
  engine(
    'the way back of an answer makes its entries younger',
    patch(serviceClock, 'const byHeader = polledAt - ', 'const byHeader = receivedAt - '),
  ),
  engine(
    "the service's clock is taken for our own",
    patch(
      serviceClock,
      'return Math.min(polledAt, byHeader, isServiceClockOff(serviceDate, wallClock) ? byHeader : byOwnClock);',
      'return Math.min(polledAt, byOwnClock);',
    ),
  ),

  // What is read beside the feed.
  engine(
    'a backfill ends at the first page that reaches beyond its end',
    patch(
      backfillPages,
      'beyond.length > 0 && beyond.length === items',
      'beyond.length > 0 && beyond.length > items / 2',
    ),
  ),
  engine(
    'a backfill ends at a page that is bad up to its end',
    patch(backfillPages, 'beyond.length === items', 'beyond.length === entries.length'),
  ),
  engine(
    'the history delays new runs',
    patch(backfillPages, "if (memory.backfill.kind === 'history') await pauses.reached(signal);", ''),
  ),
  engine(
    'the history delays what is asked for',
    patch(
      'src/sync/unless-asked-for.ts',
      'if (!over.signal.aborted && (await isAskedFor()))',
      'if (over.signal.aborted)',
    ),
  ),
  engine(
    'a backfill moves on with the first part of a page',
    patch(
      backfillPages,
      '{ ...part, to: cursor, deliveredUpTo: null, entries: 0, stored: 0, ...content }',
      '{ ...part, to: next ?? cursor, deliveredUpTo: null, entries: 0, stored: 0, ...content }',
    ),
  ),
  engine(
    'a cursor of a backfill that was rejected once is never tried again',
    patch(backfill, '    rejected = null;\n', ''),
  ),
  engine(
    'the history of another organization is mixed in',
    patch(
      backfill,
      'if (!(await isSameOrganization(again, from, deliveredUpTo, context, signal))) {',
      'if (again === null) {',
    ),
  ),
  engine(
    'the data is complete from the beginning before the history is in',
    patch(modelBackfills, 'if (!commit.finished) return;', ''),
  ),
];
