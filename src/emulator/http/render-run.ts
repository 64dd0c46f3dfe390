/** A run as JSON text: as a feed entry (interface 2.1) and as the single-run response (2.2). */

import { textOrNull, timestamp } from '../model/json-text.js';
import type { RunVersion, Withheld } from '../model/runs.js';
import type { Switches } from '../model/switch-types.js';

/** Selects the withheld values of a run that is truncated by share, so that all three combinations occur. */
function withheldByShare(position: number): Withheld {
  if (position < 0.7) return 'data';
  return position < 0.85 ? 'markdown' : 'both';
}

/**
 * Returns the values that the feed omits from a run. They do not depend on whether the request asked for markdown, so
 * `resultTruncated` may be true although all requested values are present.
 */
function withheldOf(version: RunVersion, data: string | null, rules: Switches): Withheld | false {
  if (version.status === 'failed') return false;
  if (version.withheld !== undefined) return version.withheld;
  if (version.truncationDraw < rules.truncatedShare)
    return withheldByShare(version.truncationDraw / rules.truncatedShare);
  const dataOver = data !== null && Buffer.byteLength(data) > rules.inlineLimitBytes;
  const markdown = version.markdown();
  const markdownOver = markdown !== null && Buffer.byteLength(markdown) > rules.inlineLimitBytes;
  if (dataOver) return markdownOver ? 'both' : 'data';
  return markdownOver ? 'markdown' : false;
}

/** Renders the fields that interface 2.1 requires, as the start of an object. */
function requiredFields(run: RunVersion, status: RunVersion['status'] | 'processing' = run.status): string {
  return (
    `{"scanId":${JSON.stringify(run.scanId)},"revision":${run.revision},"status":"${status}","environment":"${run.environment}",` +
    `"documentType":{"slug":${textOrNull(run.documentType.slug)},"name":${textOrNull(run.documentType.name)}},` +
    `"fileName":${JSON.stringify(run.fileName)}`
  );
}

/** Interface 2.1 does not require partnerTestMode. */
function head(run: RunVersion, { testModeField }: Switches): string {
  const left = testModeField === 'when-true' ? !run.partnerTestMode : testModeField !== 'always' && run.revision > 1;
  return (
    `${requiredFields(run)},"partnerName":${textOrNull(run.partnerName)},` +
    `${left ? '' : `"partnerTestMode":${run.partnerTestMode},`}"ocrConfidence":${run.ocrConfidence ?? 'null'}`
  );
}

const times = (run: Record<'submittedAt' | 'completedAt' | 'deliveredAt', number | null>): string =>
  `,"submittedAt":${timestamp(run.submittedAt)},"completedAt":${timestamp(run.completedAt)},"deliveredAt":${timestamp(run.deliveredAt)}`;

const failure = (run: RunVersion): string =>
  `,"failureReason":${textOrNull(run.failureReason)},"error":${textOrNull(run.error)}`;

/** Renders a feed entry. Withheld values are absent (interface 4.2 rule 6); failed runs carry no data (rule 8). */
export function renderEntry(run: RunVersion, rules: Switches, withMarkdown: boolean): string {
  const data = run.data();
  const withheld = withheldOf(run, data, rules);
  let text = head(run, rules);
  if (run.status === 'failed') text += failure(run);
  else if (withheld !== 'data' && withheld !== 'both') text += `,"data":${data ?? 'null'}`;
  text += `${times(run)},"resultTruncated":${withheld !== false}`;
  if (withMarkdown && withheld !== 'markdown' && withheld !== 'both')
    text += `,"markdown":${textOrNull(run.markdown())}`;
  return `${text}}`;
}

/** Renders the single-run response of a finished run with its full result, with all other fields or only the required ones. */
export function renderRun(run: RunVersion, withMarkdown: boolean, rules: Switches): string {
  const all = rules.runFields === 'all';
  const data = run.data();
  let text = all ? head(run, rules) : requiredFields(run);
  if (run.status !== 'failed') text += `,"data":${data ?? 'null'}`;
  else if (all) text += failure(run);
  const flag = rules.runFlag === 'kept' && withheldOf(run, data, rules) !== false;
  if (all) text += `${times(run)},"resultTruncated":${flag}`;
  if (withMarkdown) text += `,"markdown":${textOrNull(run.markdown())}`;
  const rawOcr = run.rawOcr();
  return `${text},"rawOcrResult":${rawOcr ?? 'null'}}`;
}

export function renderProcessing(run: RunVersion): string {
  const { submittedAt } = run;
  return `${requiredFields(run, 'processing')}${times({ submittedAt, completedAt: null, deliveredAt: null })}}`;
}
