import { setTimeout as wait } from 'node:timers/promises';
import type { SwitchesPatch } from './model/switch-types.js';

/** An API key of the emulated service (interface 5). */
export interface ApiKey {
  /** The bearer key. */
  readonly key: string;
  /** The organization that it belongs to. Null: a key that belongs to no organization (403). */
  readonly organization: string | null;
}

/** Options of `startEmulator`. */
export interface EmulatorOptions {
  /** Address to listen on. Default 127.0.0.1. */
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  /** The first one is `Emulator.apiKey`. */
  readonly apiKeys: readonly ApiKey[];
  /** Seed of all random values. */
  readonly seed: number;
  /** Finished runs that each organization has at the start. They cost no memory. */
  readonly history: number;
  /** Period before the start that the history covers. */
  readonly historyPeriodMs: number;
  /** Average size of a feed entry, bytes. */
  readonly runBytes: number;
  /**
   * Maximum number of placed entries (submissions, corrections, scripts) and idempotency keys per organization; about 1.5 KB each.
   */
  readonly liveLimit: number;
  /** Switches at the start. */
  readonly switches: SwitchesPatch;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Waits for latency and slow bodies; resolves early or rejects if the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** The API key that the emulator accepts by default. */
export const defaultApiKey = 'emulator-key';

/** The defaults of `startEmulator`: a free port of 127.0.0.1, one key, and no runs. */
export const defaultOptions: EmulatorOptions = {
  host: '127.0.0.1',
  port: 0,
  apiKeys: [{ key: defaultApiKey, organization: 'demo' }],
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
