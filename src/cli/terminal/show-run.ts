import { indentJson } from '../../core/json/indent.js';
import { memberRanges, textOf } from '../../core/json/ranges.js';
import type { RawRun } from '../../sync/ports/index.js';
import { printable } from './format.js';

/** Formats a run for a terminal: its fields, and its result with every digit as sent. Pure. */
export function describeRun({ run, body }: RawRun): string {
  const lines: readonly (readonly [string, unknown])[] = [
    ['Scan', run.scanId],
    ['Revision', run.revision],
    ['Status', run.status],
    ['Failure', run.failureReason],
    ['Service says', run.error],
    ['Environment', run.environment],
    ['Document type', documentType(run.documentType)],
    ['File', run.fileName],
    ['Partner', run.partnerTestMode === true ? `${run.partnerName ?? 'unknown'} (in test mode)` : run.partnerName],
    ['Confidence', run.ocrConfidence],
    ['Submitted', run.submittedAt],
    ['Completed', run.completedAt],
    ['Delivered', run.deliveredAt],
  ];
  const present = lines.filter(([, value]) => value !== undefined && value !== null && value !== '');
  return `${present.map(([name, value]) => `${`${name}:`.padEnd(15)}${printable(String(value))}\n`).join('')}${result(body)}`;
}

function documentType(type: unknown): string | null {
  const { slug, name } = (type ?? {}) as { readonly slug?: unknown; readonly name?: unknown };
  if (typeof slug !== 'string') return null;
  return typeof name === 'string' ? `${slug} (${name})` : slug;
}

function result(body: Uint8Array): string {
  const range = memberRanges(body).get('data');
  if (range === undefined) return '';
  return `Data:\n${indentJson(textOf(body, range))}\n`;
}

/** Returns the whole markdown, or null without markdown. */
export function markdownOf({ body }: RawRun): string | null {
  const range = memberRanges(body).get('markdown');
  const value: unknown = range === undefined ? null : JSON.parse(textOf(body, range));
  return typeof value === 'string' ? value : null;
}
