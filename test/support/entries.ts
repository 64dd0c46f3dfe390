/** Builds feed entries and pages as JSON text, so that a test can say exactly which bytes are sent. */

/** A value that is inserted into the text unchanged: digits that a JavaScript number would lose, odd escapes. */
export class RawJson {
  constructor(readonly text: string) {}
}

export const raw = (text: string): RawJson => new RawJson(text);

export type Fields = Readonly<Record<string, unknown>>;

/** An ordinary completed entry; `undefined` leaves a field out. */
export function entryFields(over: Fields = {}): Fields {
  return {
    scanId: 'scan-1',
    revision: 1,
    status: 'completed',
    environment: 'prod',
    documentType: { slug: 'rechnung', name: 'Rechnung' },
    fileName: 'rechnung-1.pdf',
    partnerName: 'Muster GmbH',
    partnerTestMode: false,
    ocrConfidence: 0.97,
    data: { betrag: raw('1.10'), nummer: raw('12345678901234567890') },
    submittedAt: '2026-01-02T08:00:00.000Z',
    completedAt: '2026-01-02T08:00:30.000Z',
    deliveredAt: '2026-01-02T08:00:31.000Z',
    resultTruncated: false,
    ...over,
  };
}

export function entryJson(over: Fields = {}): string {
  return toJson(entryFields(over));
}

export function pageJson(entries: readonly string[], nextCursor: unknown = 'cursor-1'): string {
  return `{"items":[${entries.join(',')}],"nextCursor":${toJson(nextCursor)}}`;
}

/** JSON.stringify, except that {@link RawJson} goes in as it is. */
export function toJson(value: unknown): string {
  if (value instanceof RawJson) return value.text;
  if (Array.isArray(value)) return `[${value.map((item) => toJson(item ?? null)).join(',')}]`;
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value).filter(([, member]) => member !== undefined);
    return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${toJson(member)}`).join(',')}}`;
  }
  return JSON.stringify(value) ?? 'null';
}
