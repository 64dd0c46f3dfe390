import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { ALL_VARIABLES, VARIABLES } from '../../src/settings/variables.js';
import { formOf } from '../support/deployment/setting-forms.js';
import {
  CHECKS,
  ownValues,
  RANGES_FILE,
  renderRanges,
  renderValuesSchema,
  SCHEMA_FILE,
} from '../support/deployment/values-schema.js';

const schema = JSON.parse(readFileSync(SCHEMA_FILE, 'utf8'));
const ajv = new Ajv({ strict: false });
const isAllowed = ajv.compile({ ...schema.properties.settings, definitions: schema.definitions });

/** Values of each setting as they are written in YAML. The program takes all of the first list and none of the second. */
const VALUES: Readonly<Record<string, readonly [allowed: readonly unknown[], rejected: readonly unknown[]]>> = {
  SCANFEED_LOG_LEVEL: [
    ['trace', 'silent'],
    ['verbose', 'INFO', 3, true],
  ],
  SCANFEED_MARKDOWN: [
    [true, false, 'yes', 'off', 1, '0'],
    ['maybe', 2, 'y'],
  ],
  SCANFEED_POLL_INTERVAL: [
    ['5s', '500ms', '1.5 m', '1d'],
    ['5', 5, '5sec', '-5s', 's', '5s '],
  ],
  SCANFEED_RECONCILE_INTERVAL: [
    ['1h', 'off', false],
    [true, 'never', 3600],
  ],
  SCANFEED_MEMORY_BUDGET: [
    ['64MiB', '1GiB', '134217728B'],
    ['64Mi', '64MB', 134_217_728],
  ],
  SCANFEED_PAGE_LIMIT: [
    [1, 200, '50'],
    [0, 201, -1, 1.5, 'all', '50 '],
  ],
  SCANFEED_REQUESTS_PER_SECOND: [
    [0.5, 20, 10_000, '0.5'],
    [0, -1, 10_001, '1/s'],
  ],
  SCANFEED_ENVIRONMENT: [
    ['prod', 'all'],
    ['production', true],
  ],
  SCANFEED_STATUS: [
    ['completed', 'failed, completed'],
    ['done', 'completed,', 'completed;failed'],
  ],
  SCANFEED_START: [
    ['beginning', 'live', '2026-01-31T00:00:00Z', '2026-01-31T00:00:00.5+01:00'],
    [
      ...['2026-01-31', '2026-01-31T00:00:00', '2026-01-31T00:00Z', '2026-02-30T00:00:00Z'],
      ...['2026-01-31T00:00:00+0100', 'yesterday'],
    ],
  ],
  SCANFEED_DOCUMENT_TYPE: [
    ['007', 'invoice'],
    [7, 'in voice', '\u0000'],
  ],
  SCANFEED_DATABASE_SCHEMA: [
    ['scanfeed', 'a_1'],
    ['pg_own', 'information_schema', '1a', 'Scanfeed', 'a'.repeat(54)],
  ],
  SCANFEED_READER_ROLE: [['reader'], ['public', 'none', 'my-reader']],
  SCANFEED_TYPED_VIEWS: [
    ['auto', 'off', false],
    ['on', true],
  ],
  SCANFEED_REPORTING_TIME_ZONE: [
    ['UTC', 'Europe/Berlin'],
    ['CET', '+01:00', 1],
  ],
  SCANFEED_RETENTION_DAYS: [
    [730, '730', 'off', false, 'runs=730,run_history=90', 'runs = 730'],
    [0, 36_501, true, '2y', 'runs=730,', 'rows=1'],
  ],
  PGHOST: [
    ['db.example', '/run/postgresql'],
    ['a.example,b.example', 5],
  ],
  PGPORT: [
    [5432, '5432'],
    [0, 65_536, 'five'],
  ],
  PGSSLMODE: [['verify-full'], ['verify_full', true]],
  SCANFEED_ADMIN_HOST: [
    ['0.0.0.0', '::1', 'localhost'],
    ['a b', ''],
  ],
};

/** The text that the chart makes of a value. */
const asText = (value: unknown) => (value === false ? 'off' : String(value));
const isAccepted = (name: string, value: unknown) =>
  ALL_VARIABLES.find((variable) => variable.name === name)?.schema.safeParse(asText(value)).success;

describe('values.schema.json', () => {
  test('follows from the table of variables', async () => {
    await expect(renderValuesSchema()).toMatchFileSnapshot(SCHEMA_FILE);
    await expect(renderRanges()).toMatchFileSnapshot(RANGES_FILE);
    const names = ALL_VARIABLES.map(({ name }) => name);
    expect(Object.keys(ownValues()).filter((name) => !names.includes(name))).toEqual([]);
  });

  test.each(Object.entries(VALUES))('checks %s as the program does', (name, [allowed, rejected]) => {
    const given = [...allowed, ...rejected];
    expect(given.filter((value) => isAllowed({ [name]: value }))).toEqual(allowed);
    expect(given.filter((value) => typeof value !== 'number' && isAccepted(name, value))).toEqual(
      allowed.filter((value) => typeof value !== 'number'),
    );
  });

  test('allows the default of every setting', () => {
    const own = ownValues();
    const defaults = ALL_VARIABLES.filter(({ name, default: value }) => value !== null && !Object.hasOwn(own, name));
    expect(defaults.length).toBeGreaterThan(20);
    expect(defaults.filter(({ name, default: value }) => !isAllowed({ [name]: value }))).toEqual([]);
    // The same after YAML has read them without quotes; `::` needs quotes.
    const unquoted = defaults.map(({ name, default: value }) => [name, value === '::' ? value : parse(value ?? '')]);
    expect(unquoted.filter(([name, value]) => !isAllowed({ [name]: value }))).toEqual([]);
  });

  test('has the bounds of settings with a value of their own', () => {
    const { feed, database, port } = schema.properties;
    expect(`^${feed.pattern.slice(1)}`).toBe(formOf(VARIABLES.feed.name).pattern);
    const { minimum, maximum } = database.properties.connections;
    expect({ minimum, maximum }).toMatchObject({
      minimum: formOf(VARIABLES.database.poolSize).minimum,
      maximum: formOf(VARIABLES.database.poolSize).maximum,
    });
    expect(port).toEqual({ $ref: '#/definitions/port' });
    expect(schema.definitions.port.maximum).toBe(formOf(VARIABLES.admin.port).maximum);
    for (const { name, default: value } of [
      VARIABLES.feed.memoryBudgetBytes,
      VARIABLES.process.shutdownTimeoutMs,
      VARIABLES.feed.pollIntervalMs,
    ]) {
      expect(CHECKS).toContain(`get .Values.settings "${name}" | default "${value}"`);
    }
  });
});
