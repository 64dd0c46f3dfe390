import { describe, expect, it } from 'vitest';
import { columnName, viewName } from '../../../src/storage/reporting/names.js';

const RULES = { fixed: new Set(['scan_id']), reserved: new Set(['current_date']) };

describe('the name of a key', () => {
  const nameOf = (key: string) => columnName([key], '', new Set(), RULES);

  it.each([
    ['skontoProzent', 'skonto_prozent'],
    ['SkontoProzent', 'skonto_prozent'],
    ['skonto_prozent', 'skonto_prozent'],
    ['SKONTO_PROZENT', 'skonto_prozent'],
    ['Skonto-Prozent (%)', 'skonto_prozent'],
    ['größeÄndern', 'groesse_aendern'],
    ['ÄNDERUNG', 'aenderung'],
    ['eMail', 'e_mail'],
  ])('separates the words of %s with underscores when it converts them', (key, name) => {
    expect(nameOf(key)).toBe(name);
  });

  it.each([
    ['IBAN', 'iban'],
    ['lieferantIBAN', 'lieferant_iban'],
    ['PDFName', 'pdf_name'],
    ['ustIDNr', 'ust_id_nr'],
    ['UStIdNr', 'ust_id_nr'],
    ['uStId', 'ust_id'],
    ['betragMwSt', 'betrag_mwst'],
    ['mwStSatz', 'mwst_satz'],
    ['GmbHName', 'gmbh_name'],
    ['positionIDs', 'position_ids'],
    ['IBANs', 'ibans'],
  ])('keeps the acronyms of %s in one piece when it converts them', (key, name) => {
    expect(nameOf(key)).toBe(name);
  });

  it.each([
    ['zeile2', 'zeile2'],
    ['zeile2Text', 'zeile2_text'],
    ['A4Format', 'a4_format'],
    ['B2B', 'b2b'],
    ['2FA', '_2fa'],
    ['ISO9001Nr', 'iso9001_nr'],
  ])('keeps the digits of %s with the letters before them when it converts them', (key, name) => {
    expect(nameOf(key)).toBe(name);
  });
});

describe('viewName', () => {
  it('ends in _history when the name has to be truncated', () => {
    const taken = new Set([viewName('x'.repeat(60), [], new Set())]);
    expect(viewName('x'.repeat(60), [], taken, '_history')).toBe(`document_${'x'.repeat(46)}_history`);
  });

  it('separates the words of slugs and arrays when it is made', () => {
    expect(viewName('EingangsRechnung', [['skontoStaffel']], new Set())).toBe(
      'document_eingangs_rechnung_skonto_staffel',
    );
  });
});
