import { articles, customer, type Partner, remarks } from './catalogue.js';
import { amount, confidence, quantity } from './json-text.js';
import { Random } from './random.js';

/** A generated business document. Money is in cents, quantities are in thousandths. */
export type BusinessDocument = ReturnType<typeof makeDocument>;
type LineItem = ReturnType<typeof makeItem>;

export interface DocumentRequest {
  readonly kind: string;
  readonly title: string;
  /** Seed of everything in the document. */
  readonly seed: number;
  readonly revision: number;
  /** Time of completion, milliseconds since 1970. */
  readonly at: number;
  readonly partner: Partner;
  /** Average size of the whole feed entry, bytes. */
  readonly runBytes: number;
}

/** Measured sizes of a feed entry without its lines and of one line, bytes. */
const bytesWithoutItems = 1180;
const bytesPerItem = 172;
const dayMs = 86_400_000;
const prefixes: Readonly<Record<string, string>> = {
  rechnung: 'RE',
  lieferschein: 'LS',
  auftragsbestaetigung: 'AB',
  gutschrift: 'GU',
};

const isoDate = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

function itemCount(random: Random, runBytes: number): number {
  const mean = Math.max(0, (runBytes - bytesWithoutItems) / bytesPerItem - 1);
  const u = random.next();
  return 1 + Math.round(3 * u * u * mean);
}

function makeItem(random: Random) {
  const [name, unit, typical, vat] = random.pick(articles);
  const price = Math.max(1, Math.round(typical * (0.8 + 0.4 * random.next())));
  const pieces = unit === 'Psch' ? 1 : random.between(1, 240);
  const isMeasured = unit === 'm' || unit === 'kg' || unit === 'l';
  const quantity = pieces * 1000 + (isMeasured ? random.between(0, 3) * 250 : 0);
  const total = Math.round((price * quantity) / 1000);
  const article = `${random.between(10, 99)}-${random.between(10_000, 99_999)}`;
  return { article, name, unit, quantity, price, total, vat };
}

function taxes(items: readonly LineItem[]): (readonly [number, number, number])[] {
  const nets = new Map<number, number>();
  for (const item of items) nets.set(item.vat, (nets.get(item.vat) ?? 0) + item.total);
  return [...nets].map(([rate, net]) => [rate, net, Math.round((net * rate) / 100)] as const);
}

/** Returns the document of a run, always the same for the same request. Later revisions differ in quantities and remark. */
export function makeDocument(request: DocumentRequest) {
  const random = new Random(request.seed);
  const date = request.at - random.between(0, 9) * dayMs;
  const year = new Date(date).getUTCFullYear();
  const reference = `${prefixes[request.kind] ?? 'BL'}-${year}-${String(random.between(1, 999_999)).padStart(6, '0')}`;
  const order = `B${random.between(100_000, 999_999)}`;
  // Twenty digits: more than a JavaScript number can hold.
  const archiveNumber = `1${String(random.between(0, 999_999_999)).padStart(9, '0')}${String(random.between(0, 999_999_999)).padStart(10, '0')}`;
  const customerNumber = String(random.between(10_000, 99_999));
  const confidences = [
    random.between(9000, 10_000),
    random.between(9200, 10_000),
    random.between(8500, 10_000),
    random.between(8000, 10_000),
  ] as const;
  const dueDate = isoDate(date + random.pick([10, 14, 30]) * dayMs);
  const count = itemCount(random, request.runBytes);
  const corrected = request.revision > 1 ? new Random(request.seed ^ Math.imul(request.revision, 0x9e3779b1)) : null;
  const items = Array.from({ length: count }, () => makeItem(corrected ?? random));
  const vat = taxes(items);
  const net = items.reduce((sum, item) => sum + item.total, 0);
  const gross = vat.reduce((sum, [, , tax]) => sum + tax, net);
  return {
    kind: request.kind,
    title: request.title,
    reference,
    order,
    archiveNumber,
    date: isoDate(date),
    dueDate,
    partner: request.partner,
    customerNumber,
    items,
    net,
    vat,
    gross,
    confidences,
    remark: corrected === null ? null : `Revision ${request.revision}: ${corrected.pick(remarks)}`,
  };
}

/** Returns the result as JSON text, in the schema of its document type. */
export function dataJson(document: BusinessDocument): string {
  const body = document.kind === 'lieferschein' ? deliveryBody(document) : moneyBody(document);
  const remark = document.remark === null ? '' : `,"bemerkung":${JSON.stringify(document.remark)}`;
  return `{"belegart":${JSON.stringify(document.title)},${heads(document)},${parties(document)},${body}${remark},${quality(document)}}`;
}

function heads(d: BusinessDocument): string {
  const own: Readonly<Record<string, string>> = {
    lieferschein: `"lieferscheinnummer":"${d.reference}","lieferdatum":"${d.date}"`,
    auftragsbestaetigung: `"auftragsnummer":"${d.reference}","auftragsdatum":"${d.date}","liefertermin":"${d.dueDate}"`,
    gutschrift: `"gutschriftnummer":"${d.reference}","gutschriftdatum":"${d.date}","bezugsrechnung":"RE-${d.date.slice(0, 4)}-${d.archiveNumber.slice(4, 10)}"`,
  };
  const head =
    own[d.kind] ?? `"rechnungsnummer":"${d.reference}","rechnungsdatum":"${d.date}","faelligkeitsdatum":"${d.dueDate}"`;
  return `${head},"bestellnummer":"${d.order}","archivnummer":${d.archiveNumber}`;
}

function parties(d: BusinessDocument): string {
  const p = d.partner;
  return (
    `"lieferant":{"name":${JSON.stringify(p.name)},"anschrift":{"strasse":"${p.street}","plz":"${p.postcode}","ort":"${p.city}","land":"${p.country}"},` +
    `"ustId":"${p.vatId}","iban":"${p.iban}"},` +
    `"empfaenger":{"name":"${customer.name}","kundennummer":"${d.customerNumber}","anschrift":{"strasse":"${customer.street}",` +
    `"plz":"${customer.postcode}","ort":"${customer.city}","land":"${customer.country}"}}`
  );
}

function moneyBody(d: BusinessDocument): string {
  const lines = d.items.map(
    (item, i) =>
      `{"position":${i + 1},"artikelnummer":"${item.article}","bezeichnung":"${item.name}",` +
      `"menge":${quantity(item.quantity)},"einheit":"${item.unit}","einzelpreis":${amount(item.price)},` +
      `"gesamtpreis":${amount(item.total)},"steuersatz":${item.vat}.00}`,
  );
  const vat = d.vat.map(([rate, net, tax]) => `{"satz":${rate}.00,"netto":${amount(net)},"steuer":${amount(tax)}}`);
  return (
    `"waehrung":"EUR","positionen":[${lines.join(',')}],"steuern":[${vat.join(',')}],` +
    `"nettobetrag":${amount(d.net)},"bruttobetrag":${amount(d.gross)},"skontoProzent":2.00`
  );
}

function deliveryBody(d: BusinessDocument): string {
  const weight = d.items.reduce((sum, item) => sum + item.quantity, 0);
  const lines = d.items.map(
    (item, i) =>
      `{"position":${i + 1},"artikelnummer":"${item.article}","bezeichnung":"${item.name}",` +
      `"bestellteMenge":${quantity(item.quantity)},"gelieferteMenge":${quantity(item.quantity)},"einheit":"${item.unit}",` +
      `"charge":"C${d.archiveNumber.slice(2, 8)}"}`,
  );
  return `"positionen":[${lines.join(',')}],"versandart":"Spedition","packstuecke":${d.items.length},"gewichtKg":${quantity(weight)}`;
}

function quality(d: BusinessDocument): string {
  const [reference, date, partner, amounts] = d.confidences;
  return (
    `"konfidenzen":{"belegnummer":${confidence(reference)},"belegdatum":${confidence(date)},` +
    `"lieferant":${confidence(partner)},"positionen":${confidence(amounts)}}`
  );
}
