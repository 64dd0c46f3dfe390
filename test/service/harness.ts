import { afterEach, beforeEach } from 'vitest';
import type { Clock } from '../../src/core/clock.js';
import { RecognitionClient } from '../../src/library/recognition-client.js';
import type { ServiceClient, ServiceClientOptions } from '../../src/service/client.js';
import type { FeedRequest } from '../../src/sync/ports/index.js';
import { captureErrorLeaks } from '../support/canaries/capture-leaks.js';
import { DEFAULT_FILTERS } from '../support/filters.js';
import { ScriptedService } from '../support/scripted-service.js';

export const KEY = 'canary-key-7f3a';

/** Reference time of every fixed date in these tests. */
export const NOW = Date.UTC(2026, 0, 2, 9, 0, 0);

/** A clock that moves only when a test calls `expire`, so that a timeout happens exactly then. */
export class HandClock implements Clock {
  readonly waiting: { ms: number; wake: () => void }[] = [];
  elapsed = 0;

  now = (): number => NOW + this.elapsed;
  monotonic = (): number => this.elapsed;
  random = (): number => 0;
  sleep = (ms: number, signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      const sleeper = { ms, wake: resolve };
      this.waiting.push(sleeper);
      signal.addEventListener('abort', () => {
        this.waiting.splice(this.waiting.indexOf(sleeper), 1);
        resolve();
      });
    });

  /** Ends every wait. */
  expire(): void {
    for (const { ms, wake } of [...this.waiting]) {
      this.elapsed = Math.max(this.elapsed, ms);
      wake();
    }
  }
}

/** A scripted service for each test, and clients that are closed after it. */
export function useService() {
  let service: ScriptedService;
  const clients: RecognitionClient[] = [];
  beforeEach(async () => {
    service = await ScriptedService.start();
  });
  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.close()));
    await service.stop();
  });
  return {
    get service() {
      return service;
    },
    client(options: Partial<ServiceClientOptions> = {}): RecognitionClient {
      const client = new RecognitionClient({
        ...options,
        baseUrl: options.baseUrl ?? service.baseUrl,
        apiKey: options.apiKey ?? KEY,
      });
      clients.push(client);
      return client;
    },
  };
}

export const never: AbortSignal = new AbortController().signal;

export const page: FeedRequest = {
  filters: DEFAULT_FILTERS,
  start: { beginning: true },
  limit: 200,
  markdown: false,
};

export const pdf = {
  file: new TextEncoder().encode('%PDF-1.7 canary-content'),
  fileName: 'rechnung.pdf',
  documentType: 'rechnung',
  environment: 'prod',
} as const;

/** The three operations, each called in the simplest way. */
export const operations = {
  feed: (client: ServiceClient, signal?: AbortSignal) => client.readPage(page, signal),
  run: (client: ServiceClient, signal?: AbortSignal) =>
    client.readRun('scan-1', { markdown: false, maxBytes: 1_000_000 }, signal),
  submit: (client: ServiceClient, signal?: AbortSignal) => client.submit({ ...pdf, signal }),
} as const;

/** The error that a promise rejects with; fails if it does not. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => Promise.reject(new Error('expected a rejection')),
    (error: unknown) => {
      captureErrorLeaks('an error of the client', error);
      return error;
    },
  );
}

/** The text of an answer's body. */
export function textOf({ body }: { readonly body: Uint8Array }): string {
  return Buffer.from(body).toString();
}
