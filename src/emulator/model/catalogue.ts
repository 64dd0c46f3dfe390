/** Names, goods and failure reasons of the generated documents. */

/** A document type of the emulated service. */
export interface DocumentType {
  /** Its identifier. */
  readonly slug: string;
  /** Its display name. */
  readonly name: string;
}

/** Document types, most frequent first. */
export const documentTypes: readonly [DocumentType, ...DocumentType[]] = [
  { slug: 'rechnung', name: 'Rechnung' },
  { slug: 'lieferschein', name: 'Lieferschein' },
  { slug: 'auftragsbestaetigung', name: 'Auftragsbestätigung' },
  { slug: 'gutschrift', name: 'Gutschrift' },
];

const partnerFields = ['name', 'street', 'postcode', 'city', 'country', 'vatId', 'iban'] as const;
export type Partner = Readonly<Record<(typeof partnerFields)[number], string>>;

/** One line per partner, in the order of {@link partnerFields}. */
const partnerLines = `
Schrauben Müller GmbH; Industriestraße 14; 73760; Ostfildern; DE; DE811204467; DE02120300000000202051
Kabelwerk Süd AG; Am Kanal 3; 86159; Augsburg; DE; DE129274202; DE02500105170137075030
Bürobedarf Weiß e. K.; Lange Straße 88; 30159; Hannover; DE; DE115235681; DE02100500000054540402
Höfer Verpackungen KG; Gewerbering 21; 49074; Osnabrück; DE; DE117505093; DE02300209000106531065
Nordstahl Handelsgesellschaft mbH; Hafenweg 7; 20457; Hamburg; DE; DE118509725; DE02200505501015871393
Elektro Böhm & Söhne OHG; Marktplatz 2; 97070; Würzburg; DE; DE134187651; DE02701500000000594937
Lackfabrik Grün GmbH; Talstraße 45; 72764; Reutlingen; DE; DE146482911; DE02600501010002034304
Papiergroßhandel Jäger; Mühlenweg 9; 41460; Neuss; DE; DE120497366; DE02370502990000684712
Hydraulik Krüger GmbH & Co. KG; Werkstraße 30; 44137; Dortmund; DE; DE124356708; DE02440501990001010015
Spedition Lührs; Am Güterbahnhof 1; 28217; Bremen; DE; DE114412908; DE02290501010001112223
Werkzeugbau Ströbele GmbH; Im Gäu 12; 71083; Herrenberg; DE; DE145998130; DE02603501300000012345
Reinigungstechnik Öztürk; Kölner Straße 101; 50859; Köln; DE; DE122652341; DE02370100500123456503
Metallbau Schäfer GmbH; Siemensstraße 6; 35394; Gießen; DE; DE112590024; DE02513500250200000014
Alpenholz Gruber GmbH; Bahnhofstraße 17; 6020; Innsbruck; AT; ATU36801500; AT026000000001349870
Chemikalien Rössler AG; Rheinallee 64; 67061; Ludwigshafen; DE; DE149137009; DE02545500100000193456
IT-Systemhaus Göbel GmbH; Technologiepark 5; 33100; Paderborn; DE; DE126229004; DE02472601210123456700
Druckerei Fröhlich; Schillerstraße 23; 04109; Leipzig; DE; DE141510383; DE02860555921100123456
Kälte-Klima Voß GmbH; Ostring 72; 24143; Kiel; DE; DE134850092; DE02210501700012345678
`;

export const partners: readonly Partner[] = partnerLines
  .trim()
  .split('\n')
  .map((line) => {
    const cells = line.split('; ');
    return Object.fromEntries(partnerFields.map((field, i) => [field, cells[i]])) as Partner;
  });

export const customer = {
  name: 'Maschinenbau Hölderlin GmbH',
  street: 'Neckarstraße 190',
  postcode: '70190',
  city: 'Stuttgart',
  country: 'DE',
} as const;

/** Goods: name, unit, typical price in cents, VAT rate in percent. */
export const articles: readonly (readonly [name: string, unit: string, cents: number, vat: number])[] = [
  ['Sechskantschraube M8 × 40 verzinkt', 'Stk', 12, 19],
  ['Unterlegscheibe DIN 125 A8,4', 'Stk', 4, 19],
  ['Kabelkanal 40 × 60 mm grau', 'm', 389, 19],
  ['Mantelleitung NYM-J 3 × 1,5', 'm', 110, 19],
  ['Kopierpapier A4 80 g', 'Pkg', 495, 19],
  ['Versandkarton 400 × 300 × 200', 'Stk', 129, 19],
  ['Stretchfolie 500 mm', 'Rolle', 845, 19],
  ['Flachstahl S235JR 50 × 8', 'kg', 215, 19],
  ['Hydrauliköl HLP 46', 'l', 430, 19],
  ['Hydraulikschlauch DN 12', 'm', 1890, 19],
  ['Acryllack RAL 7016 seidenmatt', 'l', 1475, 19],
  ['Fachbuch Konstruktionslehre', 'Stk', 5490, 7],
  ['Trinkwasser 12 × 1,0 l', 'Kiste', 720, 7],
  ['Industriereiniger Konzentrat', 'l', 690, 19],
  ['Kugellager 6204-2RS', 'Stk', 385, 19],
  ['Netzwerkkabel Cat 6A 5 m', 'Stk', 899, 19],
  ['Wartung Klimaanlage, pauschal', 'Psch', 24500, 19],
  ['Montagestunde Facharbeiter', 'Std', 6850, 19],
  ['Fräser VHM Ø 10 mm', 'Stk', 4725, 19],
  ['Brettschichtholz Fichte 80 × 160', 'm', 1640, 19],
];

/** Failure reasons with the service's words for people. */
export const failures: readonly (readonly [reason: string, error: string])[] = [
  ['ocr_failed', 'Die Texterkennung ist fehlgeschlagen.'],
  ['unreadable_document', 'Das Dokument ist nicht lesbar.'],
  ['password_protected', 'Das Dokument ist durch ein Kennwort geschützt.'],
  ['schema_mismatch', 'Das Ergebnis entspricht nicht dem Schema des Dokumenttyps.'],
  ['timeout', 'Die Verarbeitung wurde wegen Zeitüberschreitung abgebrochen.'],
  ['too_many_pages', 'Das Dokument hat zu viele Seiten.'],
];

export const remarks: readonly string[] = [
  'Menge nach Rücksprache mit dem Lieferanten berichtigt.',
  'Positionen manuell geprüft.',
  'Steuersatz berichtigt.',
  'Nach erneuter Erkennung übernommen.',
];
