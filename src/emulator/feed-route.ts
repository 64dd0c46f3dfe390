/** GET /v1/scans: the delivery feed (interface 4.2). */
import type { Call, Outcome } from './operation.js';
import { type FeedParameters, parseFeedParameters } from './parameters.js';
import { jsonAnswer, Refusal } from './refusal.js';
import { renderEntry } from './render-run.js';
import type { FilterFacts } from './runs.js';
import { beforeTime, beginning, behindTime, type Content, comparePlaces, type Place } from './sequence.js';

export function feed(call: Call): Outcome {
  const { service, organization, query, fault } = call;
  const { switches } = service;
  const parameters = parseFeedParameters(query);
  if (parameters.documentType !== null) service.requireDocumentType(parameters.documentType);
  const nowMs = service.now();
  const from = startOf(call, parameters);
  organization.advance(nowMs);
  const { entries, end } = organization.sequence.read({
    from,
    nowMs,
    limit: parameters.limit,
    scanLimit: switches.scanLimit,
    accepts: filterOf(parameters),
  });
  organization.storedCursors.moved(parameters.cursor === null ? null : from, end, nowMs);
  const stays = switches.cursors === 'stable' && parameters.cursor !== null && comparePlaces(from, end) === 0;
  const issued = stays ? parameters.cursor : organization.cursors.issue(end, switches.cursors);
  const nextCursor =
    fault?.kind === 'empty-cursor' ? '' : fault?.kind === 'stuck-cursor' ? (parameters.cursor ?? issued) : issued;
  const texts = entries.map((entry) =>
    'verbatim' in entry ? entry.verbatim.text : renderEntry(entry.version, switches, parameters.markdown),
  );
  return {
    answer: jsonAnswer(200, page(texts, fault?.kind === 'missing-cursor' ? null : nextCursor)),
    served: entries.flatMap(servedOf),
    verbatim: entries.some((entry) => 'verbatim' in entry),
    nextCursor: fault?.kind === 'missing-cursor' ? null : nextCursor,
  };
}

function startOf({ service, organization, fault }: Call, { cursor, since }: FeedParameters): Place {
  if (cursor !== null) {
    const place = fault?.kind === 'invalid-cursor' ? null : organization.cursors.open(cursor);
    if (place === null) throw new Refusal(400, 'Der Cursor ist ungültig.');
    return place;
  }
  if (since === null) return beginning;
  return service.switches.sinceBoundary === 'inclusive' ? beforeTime(since) : behindTime(since);
}

/** A fact that an entry does not have (a verbatim one) passes. */
function filterOf(parameters: FeedParameters): (facts: Partial<FilterFacts>) => boolean {
  const { status, environment, documentType } = parameters;
  return (facts) =>
    (facts.status === undefined || status.has(facts.status)) &&
    (facts.environment === undefined || environment === 'all' || facts.environment === environment) &&
    (facts.documentType === undefined || documentType === null || facts.documentType === documentType);
}

function servedOf(content: Content): { scanId: string; revision: number }[] {
  return 'version' in content ? [{ scanId: content.version.scanId, revision: content.version.revision }] : [];
}

/** Text while all entries are text; bytes where a scripted entry is. */
function page(entries: readonly (string | Uint8Array)[], nextCursor: string | null): string | Uint8Array {
  const tail = nextCursor === null ? ']}' : `],"nextCursor":${JSON.stringify(nextCursor)}}`;
  if (entries.every((entry) => typeof entry === 'string')) return `{"items":[${entries.join(',')}${tail}`;
  const parts = entries.flatMap((entry, i) => [i === 0 ? '' : ',', entry]);
  return Buffer.concat(['{"items":[', ...parts, tail].map((part) => Buffer.from(part as string)));
}
