import { createHash } from 'node:crypto';
import type { FeedFilters } from '../../src/sync/ports/index.js';
import type { Fields } from '../support/entries.js';

/** A value that the model store refuses, like values that only PostgreSQL itself can detect. */
export const POISON = 'poison';

/** A revision of a run. */
export interface Version {
  /** The feed of its organization. */
  readonly feed: string;
  readonly scanId: string;
  readonly revision: number;
  readonly status: 'completed' | 'failed';
  readonly environment: 'prod' | 'test';
  /** Virtual time of its submission or completion, milliseconds; may be days before its delivery. */
  readonly earlierTime: number;
  /** Whether its result contains a value that the store refuses. */
  readonly poisonous: boolean;
  /** Whether recognition found no text, so that it has no markdown. */
  readonly bare: boolean;
  /** Whether its feed entries leave out the test mode. */
  readonly omitsTestMode: boolean;
}

/** A delivery in the sequence of the feed. */
export interface Delivery extends Version {
  /** Position in the sequence, a virtual time in milliseconds. */
  readonly key: number;
  /** Virtual delivery time that the entry shows, whole milliseconds: that of its position, or a later one. */
  readonly dated: number;
  readonly json: string;
  /** The parsed entry. */
  readonly item: unknown;
  /** Time from which the feed lists it. */
  readonly visibleFrom: number;
  /** Whether a cursor may have skipped its position. */
  readonly behind: boolean;
  /** Whether it can be stored; otherwise it must be in quarantine. */
  readonly usable: boolean;
  /** Identity in the quarantine. */
  readonly identity: string;
}

/** How an entry is delivered. `truncated…`: values that are too large. `repairable`: has text that PostgreSQL cannot store. */
export type Shape =
  | 'full'
  | 'truncated'
  | 'truncated_data'
  | 'truncated_markdown'
  | 'other_content'
  | 'repairable'
  | 'bad_status'
  | 'no_scan_id';

const TRUNCATED: readonly Shape[] = ['truncated', 'truncated_data', 'truncated_markdown'];
const UNUSABLE: readonly Shape[] = ['bad_status', 'no_scan_id'];

/** Returns the `data` that must be stored for a revision; a delivery with other content has more fields. */
export function resultOf({ scanId, revision }: Pick<Version, 'scanId' | 'revision'>): Fields {
  return { scan: scanId, revision };
}

/** @param deliveredAt by the service's clock */
export function deliver(
  version: Version,
  shape: Shape,
  markdown: boolean,
  deliveredAt: Date,
  position: Pick<Delivery, 'key' | 'dated' | 'visibleFrom' | 'behind'>,
): Delivery {
  const { scanId, revision, status } = version;
  const withoutData = shape === 'truncated' || shape === 'truncated_data';
  const fields: Record<string, unknown> = { ...fieldsOf(version, markdown), deliveredAt: deliveredAt.toISOString() };
  if (version.omitsTestMode) fields.partnerTestMode = undefined;
  if (TRUNCATED.includes(shape)) fields.resultTruncated = true;
  if (withoutData) fields.data = undefined;
  if (shape === 'truncated' || shape === 'truncated_markdown') fields.markdown = undefined;
  if (shape === 'other_content' && status === 'completed') fields.data = { ...resultOf(version), other: true };
  if (shape === 'repairable') fields.fileName = 'half a pair \ud800';
  if (shape === 'bad_status') fields.status = 'archived';
  if (shape === 'no_scan_id') fields.scanId = null;
  const json = JSON.stringify(fields);
  const refused = version.poisonous && status === 'completed' && !withoutData && shape !== 'other_content';
  return {
    ...version,
    ...position,
    json,
    item: fields,
    usable: !UNUSABLE.includes(shape) && !refused,
    identity: shape === 'no_scan_id' ? createHash('sha256').update(json).digest('hex') : `${scanId}#${revision}`,
  };
}

/**
 * Returns the response of the single-run endpoint (interface 4.3).
 * @param sparse without the optional fields of the feed entry
 */
export function runJson(version: Version, markdown: boolean, sparse: boolean, over: Fields = {}): string {
  const fields = { ...fieldsOf(version, markdown), rawOcrResult: { pages: 1 }, ...over };
  return JSON.stringify(sparse ? { ...fields, partnerName: undefined, partnerTestMode: undefined } : fields);
}

/** Returns whether a revision's partner is in test mode. */
export function isTestMode({ revision }: Pick<Version, 'revision'>): boolean {
  return revision % 2 === 0;
}

function fieldsOf(version: Version, markdown: boolean): Fields {
  const { scanId, revision, status, environment, poisonous, bare } = version;
  const outcome =
    status === 'completed'
      ? { data: { ...resultOf(version), ...(poisonous && { value: POISON }) } }
      : { failureReason: 'unreadable', error: 'nicht lesbar' };
  return {
    scanId,
    revision,
    status,
    environment,
    documentType: { slug: 'rechnung', name: 'Rechnung' },
    fileName: `${scanId}.pdf`,
    partnerName: 'Muster',
    partnerTestMode: isTestMode(version),
    ...outcome,
    ...(markdown && !bare && { markdown: `# ${scanId} ${revision}` }),
  };
}

/** Returns whether the filters include a revision (interface 4.2 rule 2). */
export function isListed({ status, environment }: Version, filters: FeedFilters): boolean {
  return filters.status.includes(status) && (filters.environment === 'all' || filters.environment === environment);
}
