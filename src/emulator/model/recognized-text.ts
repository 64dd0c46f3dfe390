import { customer } from './catalogue.js';
import type { BusinessDocument } from './documents.js';
import { amount, confidence, quantity } from './json-text.js';

export function markdownOf(d: BusinessDocument): string {
  const lines = [
    `# ${d.title} ${d.reference}`,
    '',
    `**${d.partner.name}**, ${d.partner.street}, ${d.partner.postcode} ${d.partner.city}`,
    '',
    `An: ${customer.name}, ${customer.street}, ${customer.postcode} ${customer.city}`,
    `Datum: ${d.date} · Bestellung: ${d.order} · Kundennummer: ${d.customerNumber}`,
    '',
    '| Pos. | Bezeichnung | Menge | Preis | Gesamt |',
    '|---:|---|---:|---:|---:|',
  ];
  d.items.forEach((item, i) => {
    lines.push(
      `| ${i + 1} | ${item.name} | ${quantity(item.quantity)} ${item.unit} | ${amount(item.price)} | ${amount(item.total)} |`,
    );
  });
  lines.push('', `Netto ${amount(d.net)} EUR, brutto **${amount(d.gross)} EUR**`);
  return lines.join('\n');
}

/** Returns a raw OCR result as JSON text: the lines of the markdown as boxes on one page. */
export function rawOcrJson(markdown: string, confidenceAt: number): string {
  const lines = markdown
    .split('\n')
    .filter((line) => line !== '')
    .map(
      (line, i) =>
        `{"text":${JSON.stringify(line)},"box":[72.00,${72 + 14 * i}.50,523.25,${84 + 14 * i}.00],"confidence":${confidence(confidenceAt)}}`,
    );
  return `{"engine":"emulator","pages":[{"page":1,"width":595.28,"height":841.89,"lines":[${lines.join(',')}]}]}`;
}
