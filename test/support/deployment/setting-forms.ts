import { z } from 'zod';
import type { Variable } from '../../../src/settings/variables.js';

/** JSON schema of the values of a setting in YAML. */
export type Form = Readonly<Record<string, unknown>>;

/** A form as zod derives it from the schema of a setting, which has texts alone. */
interface Derived {
  readonly type?: string;
  readonly format?: string;
  readonly pattern?: string;
  readonly enum?: readonly string[];
  readonly const?: string;
  readonly anyOf?: readonly Derived[];
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
  readonly maxLength?: number;
}

const FLAG: Form = { enum: [true, false, 'true', 'false', 'yes', 'no', 'on', 'off', 1, 0, '1', '0'] };
/** A duration or a size, whose bounds a form cannot express. */
const WITH_UNIT = /\((ms|B)\|/;

/** What zod cannot derive, because a function checks it. */
const CHECKED: Readonly<Record<string, Form>> = {
  SCANFEED_STATUS: { type: 'string', pattern: '^ *(completed|failed) *(, *(completed|failed) *)*$' },
  SCANFEED_DATABASE_SCHEMA: { not: { pattern: '^(pg_.*|information_schema)$' } },
  SCANFEED_READER_ROLE: { not: { pattern: '^(pg_.*|public|none)$' } },
  SCANFEED_RETENTION_DAYS: {
    type: ['string', 'integer', 'boolean'],
    pattern:
      '^off$|^\\d{1,5}$|^ *(runs|run_history|quarantine) *= *\\d{1,5} *(, *(runs|run_history|quarantine) *= *\\d{1,5} *)*$',
    minimum: 1,
    maximum: 36_500,
    not: { const: true },
  },
};

/** Returns the form of a setting. It accepts every value that the program accepts in its usual notation. */
export function formOf({ name, schema }: Pick<Variable, 'name' | 'schema'>): Form {
  const derive = (io: 'input' | 'output') => z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as Derived;
  return { ...writtenAs(derive('input'), derive('output')), ...CHECKED[name] };
}

function writtenAs(text: Derived, value: Derived): Form {
  if (value.type === 'boolean') return FLAG;
  if (text.enum !== undefined) return { enum: [...text.enum, ...(text.enum.includes('off') ? [false] : [])] };
  if (text.anyOf !== undefined) return eitherOf(text.anyOf);
  if (text.format === 'uri') return { type: 'string', pattern: '^https?:\\/\\/\\S+$' };
  const { pattern = '', maxLength } = text;
  const { minimum, exclusiveMinimum, maximum } = value;
  if (maximum !== undefined && !WITH_UNIT.test(pattern)) {
    const type = [pattern.includes('\\.') ? 'number' : 'integer', 'string'];
    return { type, pattern, ...(minimum === undefined ? { exclusiveMinimum } : { minimum }), maximum };
  }
  return { type: 'string', ...(pattern !== '' && { pattern }), ...(maxLength !== undefined && { maxLength }) };
}

/** Words, or a text. YAML reads an unquoted `off` as false. */
function eitherOf([words, text]: readonly Derived[]): Form {
  const listed = words?.enum ?? [words?.const ?? ''];
  const pattern = `^(${listed.join('|')})$|${text?.pattern}`;
  return listed.includes('off')
    ? { type: ['string', 'boolean'], pattern, not: { const: true } }
    : { type: 'string', pattern };
}

/** Returns the lowest and the highest value of a number, a duration or a size in text; undefined for other settings. */
export function rangeOf({ schema, allowed }: Pick<Variable, 'schema' | 'allowed'>): readonly string[] | undefined {
  const [, ...range] = /\bfrom (\d\w*) to (\d\w*)/.exec(allowed) ?? [];
  for (const value of range) schema.parse(value);
  if (range.length > 0) return range;
  return /^a number greater than 0, up to 10000,/.test(allowed) ? ['0.000001', '10000'] : undefined;
}
