import { expect, it } from 'vitest';
import { checkPage } from '../../../src/sync/page/check-page.js';
import { entryJson, pageJson } from '../../support/entries.js';
import { polledPage, rawPage } from '../../support/pages.js';

const FUTURE = '2070-01-01T00:00:00.000Z';
const NOW = new Date('2026-01-01T12:00:00.000Z');
const TIMES = { polledAt: 0, receivedAt: 100, wallClock: NOW.getTime(), serviceDate: null };
const at = (hour: number) => `2026-01-01T${hour}:00:00.000Z`;

function provenBy(entries: readonly string[], isFull: boolean): Date | null {
  const items = entries.length;
  const polled = polledPage({ items, limit: isFull ? items : items + 1 });
  return checkPage({ ...polled, raw: rawPage(pageJson(entries)), times: TIMES }).provenUpTo;
}

type Delivery = readonly [deliveredAt: string | null, revision?: number];

it.each<readonly [string, readonly Delivery[], string | null]>([
  ['the last delivery of a sorted page', [[at(10)], [at(10)], [at(11)]], at(11)],
  ['nothing by a page that is not sorted', [[at(11)], [at(10)]], null],
  ['nothing by a correction', [[at(10)], [at(11), 2]], at(10)],
  ['nothing by an entry without a time', [[at(10)], [null]], at(10)],
  ['nothing by a future time', [[at(10)], [FUTURE]], at(10)],
  ['nothing by an entry after a future time, since the page is not sorted', [[at(10)], [FUTURE], [at(11)]], null],
  ['nothing by an entry after a correction of a future time', [[FUTURE, 2], [at(11)]], null],
])('proves %s', (_, deliveries, proven) => {
  const entries = deliveries.map(([deliveredAt, revision = 1], index) =>
    entryJson({ scanId: `scan-${index}`, deliveredAt, revision }),
  );
  expect(provenBy(entries, false)?.toISOString() ?? null).toBe(proven);
});

it.each<readonly [string, readonly number[], boolean, boolean]>([
  ['nothing by a full page, since its answer may have set them', [0, 1_000, 1_100], true, false],
  ['the last one if the page is not full', [0, 1_000, 1_100], false, true],
  ['the last one if they are further apart', [0, 1_000, 1_101], true, true],
  ['nothing by a full page of one entry', [0], true, false],
])('proves by delivery times within the time of the answer: %s', (_, offsets, isFull, isProof) => {
  const times = offsets.map((ms) => new Date(NOW.getTime() - 60_000 + ms));
  const entries = times.map((time, index) =>
    entryJson({ scanId: `scan-${index}`, deliveredAt: time.toISOString(), revision: 1 }),
  );
  expect(provenBy(entries, isFull)).toEqual(isProof ? times.at(-1) : null);
});
