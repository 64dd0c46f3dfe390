import { createHash } from 'node:crypto';
import type { FeedFilters } from '../../src/sync/ports/index.js';
import type { Fields } from '../support/entries.js';

/** A value that the model of the store refuses, as PostgreSQL refuses some: nothing shows it beforehand. */
export const POISON = 'poison';

/** A revision of a run. */
export interface Version {
  readonly scanId: string;
  readonly revision: number;
  readonly status: 'completed' | 'failed';
  readonly environment: 'prod' | 'test';
  /** Virtual time of its submission or completion, milliseconds; may be days before its delivery. */
  readonly earlierTime: number;
  /** Its result holds a value that the store refuses. */
  readonly poisonous: boolean;
  /** Nothing was recognised that could be shown as markdown. */
  readonly bare: boolean;
}

/** A delivery in the one sequence of the feed. */
export interface Delivery extends Version {
  /** Place in the sequence, by virtual time in milliseconds. */
  readonly key: number;
  /** The virtual time of delivery that the entry shows, whole milliseconds: that of its place, or a later one. */
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
  /** Its identity in the quarantine. */
  readonly identity: string;
}

/** How an entry is delivered. `truncated…`: which values are too large. `repairable`: text that PostgreSQL cannot hold. */
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

/** The `data` that a revision must end up with; a delivery with other content comes with more. */
export function resultOf({ scanId, revision }: Pick<Version, 'scanId' | 'revision'>): Fields {
  return { scan: scanId, revision };
}

/** @param deliveredAt by the service's clock */
export function deliver(
  version: Version,
  shape: Shape,
  markdown: boolean,
  deliveredAt: Date,
  place: Pick<Delivery, 'key' | 'dated' | 'visibleFrom' | 'behind'>,
): Delivery {
  const { scanId, revision, status } = version;
  const withoutData = shape === 'truncated' || shape === 'truncated_data';
  const fields: Record<string, unknown> = { ...fieldsOf(version, markdown), deliveredAt: deliveredAt.toISOString() };
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
    ...place,
    json,
    item: fields,
    usable: !UNUSABLE.includes(shape) && !refused,
    identity: shape === 'no_scan_id' ? createHash('sha256').update(json).digest('hex') : `${scanId}#${revision}`,
  };
}

/**
 * The answer of the single-run endpoint (interface 4.3).
 * @param sparse without the optional fields of the feed entry
 */
export function runJson(version: Version, markdown: boolean, sparse: boolean, over: Fields = {}): string {
  const fields = { ...fieldsOf(version, markdown), rawOcrResult: { pages: 1 }, ...over };
  return JSON.stringify(sparse ? { ...fields, partnerName: undefined, partnerTestMode: undefined } : fields);
}

/** Whether a revision's partner is in test mode. */
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

/** Returns whether the filters include it (interface 4.2 rule 2). */
export function isListed({ status, environment }: Version, filters: FeedFilters): boolean {
  return filters.status.includes(status) && (filters.environment === 'all' || filters.environment === environment);
}
