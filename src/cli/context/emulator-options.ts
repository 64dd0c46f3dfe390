import { InvalidArgumentError, Option } from 'commander';
import { z } from 'zod';
import type { FaultInput } from '../../emulator/model/fault-types.js';
import type { Switches, SwitchesPatch } from '../../emulator/model/switch-types.js';
import { defaultSwitches, switchesSchema } from '../../emulator/model/switches.js';
import { UNIT_BYTES, UNIT_MS } from '../../settings/kinds.js';
import { numberOption } from './parse-options.js';

/** Options of `scanfeed emulator`: one for each switch. */

function measure(value: string, units: Readonly<Record<string, number>>, example: string): number {
  const [, number, unit] = /^(-?\d+(?:\.\d+)?)([A-Za-z]+)$/.exec(value) ?? [];
  const factor = unit === undefined ? undefined : units[unit];
  if (number === undefined || factor === undefined) throw new InvalidArgumentError(`Write it like ${example}.`);
  return Number(number) * factor;
}

export const duration = (value: string): number => measure(value, UNIT_MS, '500ms, 30s, 5m, 24h or 7d');
export const size = (value: string): number => Math.round(measure(value, UNIT_BYTES, '512B, 64KiB or 20MiB'));

const wholeNumber = numberOption(0);

function decimal(value: string): number {
  if (!/^\d+(\.\d+)?$/.test(value)) throw new InvalidArgumentError('It must be a number, 0 or more.');
  return Number(value);
}

function share(value: string): number {
  const number = decimal(value);
  if (number > 1) throw new InvalidArgumentError('It must be a share, 0 to 1.');
  return number;
}

function schema(value: string, earlier: Switches['notReadySchemas'] = []): Switches['notReadySchemas'] {
  const [documentType, environment] = value.split(':');
  if (documentType === undefined || (environment !== 'prod' && environment !== 'test')) {
    throw new InvalidArgumentError('Write it like rechnung:test.');
  }
  return [...earlier, { documentType, environment }];
}

function fault(value: string, earlier: readonly FaultInput[] = []): FaultInput[] {
  try {
    return [...earlier, JSON.parse(value) as FaultInput];
  } catch {
    throw new InvalidArgumentError('Write it as JSON, like \'{"kind":"status","status":503,"share":0.05}\'.');
  }
}

/** Flag and parser of each switch. Help text, choices and default are taken from the switch itself. */
const flags: Readonly<Record<keyof Switches, { flag: string; read?: (value: string, earlier: never) => unknown }>> = {
  latencyMs: { flag: '--latency <duration>', read: duration },
  failureShare: { flag: '--failure-share <share>', read: share },
  truncatedShare: { flag: '--truncated-share <share>', read: share },
  testEnvironmentShare: { flag: '--test-share <share>', read: share },
  newRunsPerSecond: { flag: '--new-runs-per-second <number>', read: decimal },
  correctionsPerMinute: { flag: '--corrections-per-minute <number>', read: decimal },
  processingMs: { flag: '--processing <duration>', read: duration },
  lateShare: { flag: '--late-share <share>', read: share },
  lateByMs: { flag: '--late-by <duration>', read: duration },
  redelivery: { flag: '--redelivery <where>' },
  superseded: { flag: '--superseded <what>' },
  cursors: { flag: '--cursors <kind>' },
  cursorFilters: { flag: '--cursor-filters <kind>' },
  cursorLength: { flag: '--cursor-length <number>', read: wholeNumber },
  cursorRefusal: { flag: '--cursor-refusal <how>' },
  endCursor: { flag: '--end-cursor <kind>' },
  sinceMeaning: { flag: '--since-meaning <time>' },
  sinceBoundary: { flag: '--since-boundary <kind>' },
  runFields: { flag: '--run-fields <kind>' },
  runFlag: { flag: '--run-flag <kind>' },
  testModeField: { flag: '--test-mode-field <when>' },
  inlineLimitBytes: { flag: '--inline-limit <size>', read: size },
  maxFileBytes: { flag: '--max-file <size>', read: size },
  idempotencyKeyRequired: { flag: '--idempotency-key-required' },
  notReadySchemas: { flag: '--schema-not-ready <slug:env>', read: schema },
  notReadyStatus: { flag: '--schema-not-ready-status <code>', read: wholeNumber },
  submissionFields: { flag: '--submission-fields <kind>' },
  statusUrlBase: { flag: '--status-url-base <url>' },
  clockOffsetMs: { flag: '--clock-offset <duration>', read: duration },
  dateHeader: { flag: '--no-date-header' },
  cacheControl: { flag: '--cache-control <value>' },
  scanLimit: { flag: '--scan-limit <number>', read: wholeNumber },
  faults: { flag: '--fault <json>', read: fault },
};

const names = Object.keys(flags) as (keyof Switches)[];

export function switchOptions(): Option[] {
  return names.map((name) => {
    const { flag, read } = flags[name];
    const schema = switchesSchema.shape[name];
    const help = name === 'dateHeader' ? 'omit the Date header' : `${schema.description}${defaultText(name)}`;
    const option = new Option(flag, help);
    const values = schema.unwrap();
    if (values instanceof z.ZodEnum) option.choices(values.options);
    if (read !== undefined) option.argParser(read as (value: string, earlier: unknown) => unknown);
    return option;
  });
}

export function switchesOf(options: Readonly<Record<string, unknown>>): SwitchesPatch {
  const given = names.flatMap((name) => {
    const value = options[new Option(flags[name].flag).attributeName()];
    return value === undefined ? [] : [[name, value]];
  });
  return Object.fromEntries(given) as SwitchesPatch;
}

function defaultText(name: keyof Switches): string {
  const value = defaultSwitches[name];
  if (value === null || typeof value === 'boolean' || Array.isArray(value)) return '';
  if (typeof value !== 'number') return ` (default: ${value})`;
  if (name.endsWith('Ms')) return ` (default: ${written(value, UNIT_MS)})`;
  return ` (default: ${name.endsWith('Bytes') ? written(value, UNIT_BYTES) : value})`;
}

/** Formats a value in the largest unit that divides it. */
function written(value: number, units: Readonly<Record<string, number>>): string {
  const fitting = Object.entries(units).filter(([, factor]) => value % factor === 0 && value >= factor);
  const [unit, factor] = fitting.at(-1) ?? (Object.entries(units)[0] as [string, number]);
  return `${value / factor}${unit}`;
}
