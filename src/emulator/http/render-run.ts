/** A run as JSON text: as a feed entry (interface 2.1) and as the single-run answer (2.2). */

import { textOrNull, timestamp } from '../model/json-text.js';
import type { RunVersion, Withheld } from '../model/runs.js';
import type { Switches } from '../model/switches.js';

type InlineRules = Pick<Switches, 'inlineLimitBytes' | 'truncatedShare'>;

/** Of the runs withheld by share: which values, so that all three combinations occur. */
function withheldByShare(position: number): Withheld {
  if (position < 0.7) return 'data';
  return position < 0.85 ? 'markdown' : 'both';
}

/**
 * What the feed leaves out of a run. It is a property of the run and does not depend on whether the request asked
 * for markdown: `resultTruncated` may be true while everything that was asked for is there.
 */
function withheldOf(version: RunVersion, data: string | null, rules: InlineRules): Withheld | false {
  if (version.withheld !== undefined) return version.withheld;
  if (version.status === 'failed') return false;
  if (version.truncationDraw < rules.truncatedShare)
    return withheldByShare(version.truncationDraw / rules.truncatedShare);
  const dataOver = data !== null && Buffer.byteLength(data) > rules.inlineLimitBytes;
  const markdown = version.markdown();
  const markdownOver = markdown !== null && Buffer.byteLength(markdown) > rules.inlineLimitBytes;
  if (dataOver) return markdownOver ? 'both' : 'data';
  return markdownOver ? 'markdown' : false;
}

/** Fields that interface 2.1 requires, as the beginning of an object. */
function requiredFields(run: RunVersion, status: RunVersion['status'] | 'processing' = run.status): string {
  return (
    `{"scanId":${JSON.stringify(run.scanId)},"revision":${run.revision},"status":"${status}","environment":"${run.environment}",` +
    `"documentType":{"slug":${textOrNull(run.documentType.slug)},"name":${textOrNull(run.documentType.name)}},` +
    `"fileName":${JSON.stringify(run.fileName)}`
  );
}

function head(run: RunVersion): string {
  return (
    `${requiredFields(run)},"partnerName":${textOrNull(run.partnerName)},` +
    `"partnerTestMode":${run.partnerTestMode},"ocrConfidence":${run.ocrConfidence ?? 'null'}`
  );
}

const times = (run: Record<'submittedAt' | 'completedAt' | 'deliveredAt', number | null>): string =>
  `,"submittedAt":${timestamp(run.submittedAt)},"completedAt":${timestamp(run.completedAt)},"deliveredAt":${timestamp(run.deliveredAt)}`;

const failure = (run: RunVersion): string =>
  `,"failureReason":${textOrNull(run.failureReason)},"error":${textOrNull(run.error)}`;

/** A feed entry. Withheld values are absent (interface 4.2 rule 6); failed runs carry no data (rule 8). */
export function renderEntry(run: RunVersion, rules: InlineRules, withMarkdown: boolean): string {
  const data = run.data();
  const withheld = withheldOf(run, data, rules);
  let text = head(run);
  if (run.status === 'failed') text += failure(run);
  else if (withheld !== 'data' && withheld !== 'both') text += `,"data":${data ?? 'null'}`;
  text += `${times(run)},"resultTruncated":${withheld !== false}`;
  if (withMarkdown && withheld !== 'markdown' && withheld !== 'both')
    text += `,"markdown":${textOrNull(run.markdown())}`;
  return `${text}}`;
}

/**
 * The single-run answer of a finished run: its result in full.
 * @param fields whether it has all other fields or the required ones only
 */
export function renderRun(run: RunVersion, withMarkdown: boolean, fields: 'all' | 'required'): string {
  const all = fields === 'all';
  let text = all ? head(run) : requiredFields(run);
  if (run.status !== 'failed') text += `,"data":${run.data() ?? 'null'}`;
  else if (all) text += failure(run);
  if (all) text += `${times(run)},"resultTruncated":false`;
  if (withMarkdown) text += `,"markdown":${textOrNull(run.markdown())}`;
  const rawOcr = run.rawOcr();
  return `${text},"rawOcrResult":${rawOcr ?? 'null'}}`;
}

/** What is known of a run that is still going. */
export function renderProcessing(run: RunVersion): string {
  const { submittedAt } = run;
  return `${requiredFields(run, 'processing')}${times({ submittedAt, completedAt: null, deliveredAt: null })}}`;
}
