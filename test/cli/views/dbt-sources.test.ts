import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { dbtSources } from '../../../src/cli/views/dbt-sources.js';

const described = (name: string, description: string) => ({
  name,
  description,
  columns: [
    { name: 'scan_id', type: 'text', description },
    { name: 'betrag', type: 'numeric', description },
  ],
});

function tablesOf(text: string) {
  return parse(text, { version: '1.1' }).sources[0].tables;
}

describe('dbtSources', () => {
  it('declares each view with its columns, types and tests', () => {
    const tests = { scan_id: ['unique', 'not_null'] };
    const text = dbtSources('reports', [described('a', 'A view')], () => ({ tests, config: '{enabled: true}' }));
    expect(parse(text).sources).toMatchObject([{ name: 'scanfeed', schema: 'reports' }]);
    expect(tablesOf(text)).toEqual([
      {
        name: 'a',
        description: 'A view',
        config: { enabled: true },
        columns: [
          { name: 'scan_id', data_type: 'text', description: 'A view', data_tests: ['unique', 'not_null'] },
          { name: 'betrag', data_type: 'numeric', description: 'A view' },
        ],
      },
    ]);
  });

  it.each([
    ['quotes and line breaks', 'a "b" \\ c\n: - # d'],
    ['characters that YAML does not allow', 'a\u0000\u007f\u0085\u009f\u2028\ufeff\ufffe'],
    ['text beyond the basic plane', 'Größe 𝟙 😀'],
  ])('keeps %s when they are in a description', (_, description) => {
    const text = dbtSources('reports', [described('a', description)], () => ({ tests: {} }));
    expect(text).not.toMatch(/[\u007f-\u009f\u2028\ufeff\ufffe]/);
    expect(tablesOf(text)[0].description).toBe(description);
  });

  it.each(['Field {{ env_var("KEY") }}', 'Field {% raw %}', 'Field {# note'])(
    'leaves no template to dbt when a key of a document is one: %s',
    (description) => {
      const text = dbtSources('reports', [described('a', description)], () => ({ tests: {} }));
      expect(text).not.toMatch(/\{[{%#]/);
      expect(tablesOf(text)[0].description.replace('{ ', '{')).toBe(description);
    },
  );
});
