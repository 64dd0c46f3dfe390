import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { VARIABLES, type Variable } from '../../../src/settings/variables.js';
import { CHART } from './chart.js';

export const SCHEMA_FILE = join(CHART, 'values.schema.json');

/** Values of the chart that set a variable, by the variable's name (templates/_checks.tpl). */
export function ownValues(): Record<string, string> {
  const text = readFileSync(join(CHART, 'templates/_checks.tpl'), 'utf8');
  const [, block = ''] = /define "scanfeed\.ownValues" -\}\}\n(.*?)\{\{/s.exec(text) ?? [];
  return parse(block);
}

/** Renders values.schema.json, of which the settings follow from the table of variables. */
export function renderValuesSchema(): string {
  const schema = JSON.parse(readFileSync(SCHEMA_FILE, 'utf8'));
  const own = ownValues();
  const variables: readonly Variable[] = Object.values(VARIABLES);
  const settings = variables.filter(({ name }) => !Object.hasOwn(own, name)).map(formOf);
  schema.properties.settings.properties = Object.fromEntries(settings);
  return `${formatJson(schema)}\n`;
}

function formOf({ name, form, meaning, allowed, default: value }: Variable): [name: string, form: unknown] {
  if (form === undefined) throw new Error(`${name} has no form`);
  const byDefault = value === null ? '' : `. Default: ${value}`;
  return [name, { ...form, description: `${meaning}. Allowed: ${allowed}${byDefault}`.replaceAll('`', '') }];
}

/** Formats JSON as the linter expects it, with short lists of plain values in one line. */
function formatJson(value: unknown): string {
  return JSON.stringify(value, null, 2).replace(/^( *.*)\[\n([^[\]{}]*?)\n *\](,?)$/gm, (all, before, items, comma) => {
    const line = `${before}[${items.trim().replace(/\n\s+/g, ' ')}]${comma}`;
    return line.length <= 120 ? line : all;
  });
}
