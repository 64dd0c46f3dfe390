/** GET /v1/scans: the delivery feed (interface 4.2). */

import { ConnectionReset, jsonAnswer, Refusal } from '../model/refusal.js';
import {
  beforeTime,
  beginning,
  behindTime,
  type Content,
  comparePlaces,
  type Place,
  type Sequence,
} from '../model/sequence.js';
import type { Switches } from '../model/switch-types.js';
import type { Call, Outcome } from './operation.js';
import { type FeedParameters, parseFeedParameters, single } from './parameters.js';
import { renderEntry } from './render-run.js';

export function feed(call: Call): Outcome {
  const { service, organization, query } = call;
  const { switches } = service;
  const parameters = parseFeedParameters(query);
  const documentType = single(query, 'documentType');
  if (documentType !== null) service.requireDocumentType(documentType);
  const nowMs = service.now();
  organization.advance(nowMs);
  const from = startOf(call, parameters, nowMs);
  const { entries, end } = organization.sequence.read({
    from,
    nowMs,
    limit: parameters.limit,
    scanLimit: switches.scanLimit,
    accepts: parameters.filters.list,
  });
  organization.storedCursors.moved(parameters.cursor === null ? null : from, end, nowMs);
  const nextCursor = nextCursorOf(call, parameters, from, end, nowMs);
  const texts = entries.map((entry) =>
    'verbatim' in entry ? entry.verbatim.text : renderEntry(entry.version, switches, parameters.markdown),
  );
  return {
    answer: jsonAnswer(200, page(texts, nextCursor)),
    served: entries.flatMap(servedOf),
    // The OpenAPI description does not allow a page without a cursor.
    verbatim: nextCursor == null || entries.some((entry) => 'verbatim' in entry),
    nextCursor: nextCursor ?? null,
  };
}

/** Returns the `nextCursor` of a page; undefined if the page has none. */
function nextCursorOf(
  { service, organization, fault }: Call,
  parameters: FeedParameters,
  from: Place,
  end: Place,
  nowMs: number,
): string | null | undefined {
  const { cursor, filters } = parameters;
  const { cursors, cursorFilters, cursorLength, endCursor } = service.switches;
  if (fault?.kind === 'missing-cursor') return undefined;
  if (fault?.kind === 'empty-cursor') return '';
  if (endCursor !== 'sent') {
    // Regardless of filters.
    const { entries } = organization.sequence.read({ from: end, nowMs, limit: 1 });
    if (entries.length === 0) return endCursor === 'null' ? null : undefined;
  }
  const stays = cursors === 'stable' && cursor !== null && comparePlaces(from, end) === 0;
  const boundTo = cursorFilters === 'bound' ? filters.text : '';
  const issued = stays ? cursor : organization.cursors.issue(end, cursors, boundTo, cursorLength);
  return fault?.kind === 'stuck-cursor' ? (cursor ?? issued) : issued;
}

function startOf(call: Call, parameters: FeedParameters, nowMs: number): Place {
  const { service, organization, fault } = call;
  const { cursor, since, filters } = parameters;
  if (cursor !== null) {
    const place = fault?.kind === 'invalid-cursor' ? null : organization.cursors.open(cursor, filters.text);
    if (place === null) throw cursorRefusal(service.switches.cursorRefusal);
    return place;
  }
  if (since === null) return beginning;
  const { sinceBoundary, sinceMeaning } = service.switches;
  const inclusive = sinceBoundary === 'inclusive';
  const place = inclusive ? beforeTime(since) : behindTime(since);
  if (sinceMeaning === 'delivered') return place;
  // Both times are before the delivery, so the first such run is not before this place.
  return placeBefore(organization.sequence, place, nowMs, (content) => {
    const time = 'version' in content ? content.version[`${sinceMeaning}At`] : null;
    return time === null || (inclusive ? time >= since : time > since);
  });
}

function cursorRefusal(how: Switches['cursorRefusal']): Error {
  if (how === 'reset') return new ConnectionReset();
  const described = how === '400' || how === '404';
  return new Refusal(Number(how), 'Der Cursor ist ungültig.', described);
}

/** Returns the place right before the first visible entry that `isMeant` accepts, else the end of the sequence. */
function placeBefore(sequence: Sequence, from: Place, nowMs: number, isMeant: (content: Content) => boolean): Place {
  for (let place = from; ; ) {
    const { entries, end } = sequence.read({ from: place, nowMs, limit: 1 });
    const [content] = entries;
    if (content === undefined || isMeant(content)) return place;
    place = end;
  }
}

function servedOf(content: Content): { scanId: string; revision: number }[] {
  return 'version' in content ? [{ scanId: content.version.scanId, revision: content.version.revision }] : [];
}

/** Renders a page as text, or as bytes if it has a scripted entry of bytes. */
function page(entries: readonly (string | Uint8Array)[], nextCursor: string | null | undefined): string | Uint8Array {
  const tail = nextCursor === undefined ? ']}' : `],"nextCursor":${JSON.stringify(nextCursor)}}`;
  if (entries.every((entry) => typeof entry === 'string')) return `{"items":[${entries.join(',')}${tail}`;
  const parts = entries.flatMap((entry, i) => [i === 0 ? '' : ',', entry]);
  return Buffer.concat(['{"items":[', ...parts, tail].map((part) => Buffer.from(part as string)));
}
