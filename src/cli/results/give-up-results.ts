import type { CommandProcess } from '../context/command-process.js';
import type { FeedAtWork } from '../context/with-feed.js';
import { confirm } from '../terminal/confirm.js';
import { counted } from '../terminal/human.js';
import { printable } from '../terminal/table.js';
import { choosePending } from './choose-pending.js';

/**
 * Gives up loading the results that are named, or all pending ones of the feed. The service is not asked: it may be gone.
 * @throws CommandFailure where one is not stored, or the answer is no
 */
export async function giveUpResults(
  named: readonly string[],
  { json, yes }: { readonly json: true | undefined; readonly yes: true | undefined },
  work: FeedAtWork<never>,
  io: CommandProcess,
): Promise<void> {
  const { pending, feed } = work;
  const { scanIds, revisions } = await choosePending(named, work);
  if (scanIds.length > 0) {
    const plan = `${counted(scanIds.length, 'result', 'results')} of the feed ${feed.name} will be given up: the runs stay without, and
nobody tries to load them again. \`resolve SCANID\` can still do so.
`;
    await confirm(io, { plan, question: 'Give them up?', yes: yes === true });
  }
  const givenUp = new Set(await pending.giveUp(feed.name, revisions));
  const left = scanIds.filter((scanId) => !givenUp.has(scanId));
  const present = new Map((await pending.findScans(left)).map((run) => [run.scanId, run.revision]));
  const results = scanIds.map((scanId) => {
    const revision = revisions.get(scanId) ?? 0;
    const kept = present.get(scanId) === revision ? 'complete' : 'replaced';
    return { scanId, revision, outcome: givenUp.has(scanId) ? 'given_up' : kept } as const;
  });
  if (json) return io.write(`${JSON.stringify(results)}\n`);
  if (results.length === 0) return io.write('No results are pending.\n');
  const said = { given_up: 'given up', complete: 'was complete already', replaced: 'was replaced meanwhile' };
  io.write(
    results
      .map(({ scanId, revision, outcome }) => `${printable(scanId)}, revision ${revision}: ${said[outcome]}\n`)
      .join(''),
  );
}
