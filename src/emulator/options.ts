import { setTimeout as wait } from 'node:timers/promises';
import type { SwitchesPatch } from './model/switches.js';

export interface ApiKey {
  readonly key: string;
  /** Null: a key that belongs to no organization (403). */
  readonly organization: string | null;
}

export interface EmulatorOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** The first is the one that `Emulator.apiKey` names. */
  readonly apiKeys: readonly ApiKey[];
  /** Everything that looks like chance comes from it. */
  readonly seed: number;
  /** Finished runs that each organization has at the start. They cost no memory. */
  readonly history: number;
  /** The history is spread over this period before the start. */
  readonly historyPeriodMs: number;
  /** Wanted size of a feed entry in bytes, on average. */
  readonly runBytes: number;
  /** Placed entries (submissions, corrections, scripts) and idempotency keys kept for each organization, at most; about 1.5 KB each. */
  readonly liveLimit: number;
  /** Where the switches stand at the start. */
  readonly switches: SwitchesPatch;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** For latency and drips; resolves early or rejects when the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

export const defaultApiKey = 'emulator-key';
export const defaultOrganization = 'demo';

export const defaultOptions: EmulatorOptions = {
  host: '127.0.0.1',
  port: 0,
  apiKeys: [{ key: defaultApiKey, organization: defaultOrganization }],
  seed: 1,
  history: 0,
  historyPeriodMs: 30 * 86_400_000,
  runBytes: 1700,
  liveLimit: 50_000,
  switches: {},
  now: Date.now,
  sleep: async (ms, signal) => {
    await wait(ms, undefined, { signal });
  },
};
