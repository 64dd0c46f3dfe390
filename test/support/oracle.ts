import { entryFields, type Fields, RawJson, raw, toJson } from './entries.js';
import { seededRandom } from './virtual-clock.js';

/** What must be in the database for a scan, said independently of the engine: from how the deliveries were made. */
export interface Expected {
  readonly revision: number;
  readonly status: string;
  readonly partnerName: string | null;
  /** That of the highest revision that was delivered with one. */
  readonly testMode: boolean;
  readonly testModeRevision: number | null;
  readonly ocrConfidence: number | null;
  /** Numbers digit by digit, as PostgreSQL writes them. */
  readonly amount: string | null;
  readonly number: string | null;
  readonly failureReason: string | null;
  readonly extra: string | null;
}

export interface Deliveries {
  /** JSON texts in the order of delivery. */
  readonly feed: readonly string[];
  /** Responses of the single-run endpoint for truncated entries: the newest revision in full, by scan id. */
  readonly runs: ReadonlyMap<string, string>;
  readonly expected: ReadonlyMap<string, Expected>;
}

interface Version {
  readonly fields: Fields;
  readonly expected: Omit<Expected, 'testMode' | 'testModeRevision'>;
}

/**
 * Deliveries of scans in random revision order, with duplicates, failures, nulls, missing and unknown fields and
 * truncated results.
 */
export function randomDeliveries(scans: number, deliveries: number, truncatedShare: number, seed: number): Deliveries {
  const random = seededRandom(seed);
  const between = (low: number, high: number) => low + Math.floor(random() * (high - low + 1));
  const versions = Array.from({ length: scans }, (_, n) =>
    Array.from({ length: between(1, 3) }, (_, r) => makeVersion(`scan-${n}`, r + 1, random)),
  );
  // Each scan's newest revision is delivered at least once; the rest of the deliveries are any revisions of any scans.
  const newest = versions.map((of) => of.at(-1) as Version);
  const more = Array.from({ length: deliveries - scans }, () => {
    const of = versions[between(0, scans - 1)] as Version[];
    return of[between(0, of.length - 1)] as Version;
  });
  const delivered = shuffled([...newest, ...more], random);
  const feed = delivered.map(({ fields }) =>
    toJson(random() < truncatedShare && fields.status === 'completed' ? truncated(fields) : fields),
  );
  const scanIds = newest.map(({ fields }) => fields.scanId as string);
  return {
    feed,
    runs: new Map(
      newest.map(({ fields }, n) => [scanIds[n] as string, toJson({ ...fields, rawOcrResult: { seiten: 1 } })]),
    ),
    expected: new Map(
      newest.map(({ fields, expected }) => [
        fields.scanId as string,
        { ...expected, ...testModeOf(delivered.filter((version) => version.fields.scanId === fields.scanId)) },
      ]),
    ),
  };
}

/** The test mode that the highest of the delivered revisions states. */
function testModeOf(versions: readonly Version[]): Pick<Expected, 'testMode' | 'testModeRevision'> {
  const [highest] = versions
    .map(({ fields }) => fields)
    .filter(({ partnerTestMode }) => partnerTestMode !== undefined)
    .sort((one, other) => (other.revision as number) - (one.revision as number));
  if (highest === undefined) return { testMode: false, testModeRevision: null };
  return { testMode: highest.partnerTestMode as boolean, testModeRevision: highest.revision as number };
}

function truncated(fields: Fields): Fields {
  return { ...fields, data: undefined, resultTruncated: true };
}

function makeVersion(scanId: string, revision: number, random: () => number): Version {
  const failed = random() < 0.1;
  const amount = `${Math.floor(random() * 1000)}.${Math.floor(random() * 10)}0`;
  const number = `1234567890123456${String(Math.floor(random() * 10_000)).padStart(4, '0')}`;
  const partner = random() < 0.2 ? null : `Lieferant ${Math.floor(random() * 50)} GmbH`;
  const confidence = random() < 0.2 ? undefined : Math.round(random() * 1000) / 1000;
  const stated = random();
  const partnerTestMode = stated < 0.3 ? undefined : stated < 0.5;
  const unknown = random() < 0.1 ? { steuersatz: raw('19.00') } : {};
  const outcome = failed
    ? { status: 'failed', failureReason: 'unreadable', error: 'Das Dokument ist nicht lesbar.', data: undefined }
    : { status: 'completed', data: { betrag: raw(amount), nummer: raw(number), stand: revision } };
  return {
    fields: entryFields({
      scanId,
      revision,
      partnerName: partner,
      partnerTestMode,
      ocrConfidence: confidence,
      ...outcome,
      ...unknown,
    }),
    expected: {
      revision,
      status: outcome.status,
      partnerName: partner,
      ocrConfidence: confidence ?? null,
      amount: failed ? null : amount,
      number: failed ? null : number,
      failureReason: failed ? 'unreadable' : null,
      extra: Object.values(unknown).some((value) => value instanceof RawJson) ? '{"steuersatz": 19.00}' : null,
    },
  };
}

function shuffled<T>(items: readonly T[], random: () => number): T[] {
  const mixed = [...items];
  for (let last = mixed.length - 1; last > 0; last -= 1) {
    const other = Math.floor(random() * (last + 1));
    [mixed[last], mixed[other]] = [mixed[other] as T, mixed[last] as T];
  }
  return mixed;
}
