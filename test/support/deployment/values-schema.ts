import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { KEYS } from '../../../src/settings/feed-entries.js';
import { ALL_VARIABLES, VARIABLES, type Variable } from '../../../src/settings/variables.js';
import { CHART } from './chart.js';
import { formOf, rangeOf } from './setting-forms.js';

export const SCHEMA_FILE = join(CHART, 'values.schema.json');
export const RANGES_FILE = join(CHART, 'templates/_ranges.tpl');

export const CHECKS = ['_checks.tpl', '_intervals.tpl']
  .map((name) => readFileSync(join(CHART, 'templates', name), 'utf8'))
  .join('');

/** Values of the chart that set a variable, by the variable's name. */
export function ownValues(): Record<string, string> {
  const [, block = ''] = /define "scanfeed\.ownValues" -\}\}\n(.*?)\{\{/s.exec(CHECKS) ?? [];
  return parse(block);
}

/** Renders values.schema.json, of which the settings follow from the table of variables. */
export function renderValuesSchema(): string {
  const schema = JSON.parse(readFileSync(SCHEMA_FILE, 'utf8'));
  const own = ownValues();
  const settings = ALL_VARIABLES.filter(({ name }) => !Object.hasOwn(own, name)).map(propertyOf);
  schema.properties.settings.properties = Object.fromEntries(settings);
  schema.properties.feeds.items = feedForm(schema.properties.baseUrl);
  return `${formatJson(schema)}\n`;
}

function propertyOf(variable: Variable): [name: string, property: unknown] {
  const { name, meaning, allowed, default: value } = variable;
  const byDefault = value === null ? '' : `. Default: ${value}`;
  const description = `${meaning}. Allowed: ${allowed}${byDefault}`.replaceAll('`', '');
  return [name, { ...formOf(variable), description }];
}

/** The form of an entry of the feeds file, with the secret of its key in place of a path. */
function feedForm(baseUrl: { readonly pattern: string }): object {
  const formOfKey = (key: string) => {
    const variable = ALL_VARIABLES.find(({ name }) => KEYS.get(name) === key) ?? VARIABLES.service.baseUrl;
    const { meaning, allowed } = variable;
    return {
      ...(key === 'baseUrl' ? baseUrl : formOf(variable)),
      description: `${meaning}. Allowed: ${allowed}`.replaceAll('`', ''),
    };
  };
  const formsOf = (keys: readonly string[], prefix = '') =>
    Object.fromEntries(keys.map((key) => [key, formOfKey(prefix + key)]));
  const keys = [...KEYS.values()].filter((key) => key !== 'apiKeyFile');
  const filters = formsOf(
    keys.flatMap((key) => /^filters\.(.*)/.exec(key)?.[1] ?? []),
    'filters.',
  );
  const list = { type: 'array', minItems: 1, items: { enum: ['completed', 'failed'] } };
  const secret = { allOf: [{ $ref: '#/definitions/resourceName' }], minLength: 1 };
  return objectOf(
    {
      ...formsOf(keys.filter((key) => !key.includes('.'))),
      apiKey: objectOf({ existingSecret: secret, key: { $ref: '#/definitions/key' } }, 'existingSecret', 'key'),
      filters: objectOf({ ...filters, status: { anyOf: [filters.status, list] } }),
    },
    'name',
  );
}

function objectOf(properties: object, ...required: readonly string[]): object {
  return { type: 'object', additionalProperties: false, ...(required.length > 0 && { required }), properties };
}

/** Renders the template with the ranges of durations, sizes and numbers. */
export function renderRanges(): string {
  const own = ownValues();
  const lines = ALL_VARIABLES.flatMap((variable) => {
    const { name } = variable;
    const range = rangeOf(variable);
    return range === undefined || Object.hasOwn(own, name) ? [] : [`${name}: ${JSON.stringify(range)}`];
  });
  return [
    '{{/* Ranges of settings. Generated from src/settings/variables.ts by the tests. */}}',
    '{{- define "scanfeed.ranges" -}}',
    ...lines,
    '{{- end }}\n',
  ].join('\n');
}

/** Formats JSON as the linter expects it, with short lists of plain values in one line. */
function formatJson(value: unknown): string {
  return JSON.stringify(value, null, 2).replace(/^( *.*)\[\n([^[\]{}]*?)\n *\](,?)$/gm, (all, before, items, comma) => {
    const line = `${before}[${items.trim().replace(/\n\s+/g, ' ')}]${comma}`;
    return line.length <= 120 ? line : all;
  });
}
