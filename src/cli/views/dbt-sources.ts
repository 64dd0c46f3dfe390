import type { DescribedView } from '../../storage/reporting/described-views.js';

/** Declarations for a view besides its description and columns. Values are YAML in one line. */
export interface SourceOptions {
  readonly tests: Readonly<Record<string, readonly string[]>>;
  readonly config?: string;
}

/**
 * Returns the views of a schema as the source `scanfeed` of a dbt project, in YAML. Several files can declare tables of the
 * same source.
 */
export function dbtSources(
  schema: string,
  views: readonly DescribedView[],
  options: (view: string) => SourceOptions,
): string {
  const tables = views.map((view) => sourceTable(view, options(view.name)));
  return `version: 2
sources:
  - name: scanfeed
    schema: ${text(schema)}
    description: "Data that scanfeed has stored from the delivery feed of the Document Recognition Service"
    tables:
${tables.join('')}`;
}

function sourceTable({ name, description, columns }: DescribedView, { tests, config }: SourceOptions): string {
  const lines = columns.map((column) => {
    const declared = tests[column.name];
    return `          - name: ${text(column.name)}
            data_type: ${text(column.type)}
            description: ${text(column.description)}
${declared === undefined ? '' : `            data_tests: [${declared.join(', ')}]\n`}`;
  });
  return `      - name: ${text(name)}
        description: ${text(description)}
${config === undefined ? '' : `        config: ${config}\n`}        columns:
${lines.join('')}`;
}

/** Characters that YAML 1.1, which dbt reads, does not allow, and those that JSON leaves but YAML takes for line breaks. */
const NOT_IN_YAML = /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g;

/** Returns a string of YAML. A key of a document could otherwise begin a template, which dbt evaluates in descriptions. */
function text(value: string): string {
  const plain = value.replaceAll(/\{(?=[{%#])/g, '{ ');
  return JSON.stringify(plain).replaceAll(
    NOT_IN_YAML,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
