import { describe, expect, it } from 'vitest';
import type { LeaseGrant } from '../../../src/sync/ports/index.js';
import { entryJson, type Fields, raw } from '../../support/entries.js';
import { feedAtEnd, nextPass, passCommit } from '../../support/passes.js';
import { claimNothing, useStore } from '../../support/store.js';

const setup = useStore();

describe('the end of the feed', () => {
  const pending = { data: undefined, resultTruncated: true };
  const repaired = raw('"a\\u0000"');
  const pages: readonly (readonly [description: string, fields: Fields, isClaimed: boolean])[] = [
    ['stores a new run', pending, false],
    ['stores nothing', pending, true],
    ['completes a run', {}, false],
    ['stores nothing any more', {}, true],
    ['raises a revision', { revision: 2 }, false],
    ['has an older revision', {}, true],
    ['has a new unusable entry', { scanId: 'unusable', status: 'odd' }, false],
    ['has an unusable entry that is known', { scanId: 'unusable', status: 'odd' }, true],
    ['stores a repaired run', { revision: 3, partnerName: repaired }, false],
    ['has a repaired run that is stored', { revision: 3, partnerName: repaired }, true],
  ];

  it.each(['feed', 'pass'] as const)(
    'is claimed by the commit of a page that may be the end of a %s only when it brings nothing new',
    async (reading) => {
      const own = await feedAtEnd(setup, { name: `end-${reading}` });
      const claims: unknown[] = [];
      for (const [description, fields] of pages) {
        const entries = [entryJson({ scanId: reading, ...fields })];
        const outcome =
          reading === 'feed'
            ? await own.commit(entries, { freshness: { ...claimNothing(), end: 'ifNothingNew' } })
            : await commitPassPage(own.lease, entries);
        claims.push([description, outcome.kind === 'committed' && outcome.endClaimed]);
      }
      expect(claims).toEqual(pages.map(([description, , isClaimed]) => [description, isClaimed]));
    },
  );

  /** Commits a page of the feed's backfill, which is requested if there is none. */
  const commitPassPage = async (lease: LeaseGrant, entries: readonly string[]) => {
    await setup.operatorStore.passes.requestBackfill(lease.feed, { since: null, until: new Date() });
    const pass = await nextPass(setup, lease.feed, 'backfill');
    const outcome = await setup.store.commitPass(passCommit(lease, pass, { end: 'ifNothingNew' }, entries));
    const { finishedAt } = (await setup.operatorStore.passes.find(pass.id)) ?? {};
    if (outcome.kind === 'committed') expect(finishedAt !== null).toBe(outcome.endClaimed);
    return outcome;
  };
});
