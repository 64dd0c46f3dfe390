import type { Failure } from '../../core/errors.js';
import type { Slice } from '../../core/json/scan.js';
import type { StoredRun, StoredSchema } from '../../storage/schema/schema-contents.js';
import type { ResultLoader } from '../../sync/results/resolve-truncated.js';

/** The schema belongs to another organization, or does not show to which one. The feed holds, and nothing of it is stored. */
class ForeignSchema extends Error implements Failure {
  override readonly name = 'ForeignSchema';
  readonly kind = 'another_organization';
  readonly action = 'hold';
  constructor(schema: string, reason: string) {
    super(
      `the schema ${schema} ${reason}. Give each organization a schema of its own: scan ids are unique only within an organization`,
    );
  }
}

/** How a feed relates to its former entry and to the other feeds of the feeds file. */
export interface FeedRelations {
  /** Whether the feeds file gave it another address, key or schema since the process started. */
  readonly hasMoved: boolean;
  /** Whether a feed before it in the feeds file has the same schema and another key. */
  readonly hasOtherKey: boolean;
}

export interface NewFeed extends FeedRelations {
  readonly schema: string;
  readonly baseUrl: string;
}

/**
 * Checks that a schema belongs to the organization of a feed that is new in it: its runs would be mixed with those of another
 * one. The stored runs are requested one by one with the feed's key, and must be known to the service.
 * @throws ForeignSchema
 */
export async function assertOwnSchema(
  { schema, baseUrl, hasMoved, hasOtherKey }: NewFeed,
  stored: StoredSchema,
  loader: ResultLoader,
  signal: AbortSignal,
): Promise<void> {
  if (!hasMoved && (await stored.hasFeed())) return;
  const { services, runs } = await stored.readContents();
  const other = services.find((service) => service !== baseUrl);
  if (other !== undefined) {
    const remedy = 'if the service has moved, run `scanfeed forget` for each feed that reads the old address';
    throw new ForeignSchema(schema, `has runs of ${other}, and this feed reads ${baseUrl}; ${remedy}`);
  }
  if (runs.length === 0) {
    if (!hasOtherKey) return;
    throw new ForeignSchema(
      schema,
      'is also used by a feed with another key, and contains no run yet that both keys know',
    );
  }
  const verdicts = await Promise.all(runs.map((run) => compare(run, loader, signal)));
  if (verdicts.includes('same')) return;
  const reason = verdicts.includes('unknown')
    ? 'has runs, but none of them could be requested with this key; `scanfeed doctor` shows whether the service responds and accepts the key'
    : 'belongs to another organization: the service does not know its runs with this key';
  throw new ForeignSchema(schema, reason);
}

/** Two organizations may use the same scan ids, so the file name and the time of the submission must be equal as well. */
async function compare(
  { scanId, revision, fileName, submittedAt }: StoredRun,
  loader: ResultLoader,
  signal: AbortSignal,
): Promise<'same' | 'other' | 'unknown'> {
  const answer = await loader.loadOnce({ scanId, revision }, signal);
  if (answer.kind === 'pending') return answer.reason === 'not_found' ? 'other' : 'unknown';
  const { readField } = answer.entry.accepted;
  const submitted = Date.parse(textOf(readField('submittedAt')));
  const differs = submittedAt !== null && !Number.isNaN(submitted) && submitted !== submittedAt;
  const verdict = differs || textOf(readField('fileName')) !== fileName ? 'other' : 'same';
  answer.release();
  return verdict;
}

/** Returns a JSON string as text; empty for anything else. */
function textOf(value: Slice | null): string {
  const parsed: unknown = value && JSON.parse(Buffer.from(value.json.subarray(value.start, value.end)).toString());
  return typeof parsed === 'string' ? parsed : '';
}
