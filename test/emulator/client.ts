import { expect, onTestFinished } from 'vitest';
import { type Emulator, type EmulatorOptions, type SwitchesPatch, startEmulator } from '../../src/emulator/index.js';
import { watchEmulator } from '../support/openapi/watch-emulator.js';

/** Noon of a day: the present of every test emulator until a test advances it. */
export const noon = Date.UTC(2026, 9, 1, 12);

export interface Page {
  items: Record<string, unknown>[];
  nextCursor: string;
}

export interface Reply {
  status: number;
  headers: Headers;
  text: string;
  json: Record<string, unknown>;
}

/** An emulator with its own clock, and a client that shares no code with it. */
export interface Setup {
  readonly emulator: Emulator;
  /** Moves the emulator's clock. */
  advance(ms: number): void;
  get(path: string, headers?: Record<string, string>): Promise<Reply>;
  /** Returns a feed page. Rejects unless the status is 200. */
  page(query?: string): Promise<Page>;
  /** Returns the entries of all pages up to the first empty one, and the last cursor. */
  drain(query?: string): Promise<{ items: Record<string, unknown>[]; cursor: string }>;
  submit(form: FormData | string | undefined, query?: string, headers?: Record<string, string>): Promise<Reply>;
  control(method: string, path: string, body?: unknown): Promise<Reply>;
}

/**
 * Starts an emulator. Shares are 0 unless set, so that every run is a completed one of `prod`. Every request and answer must
 * match the OpenAPI description of the service.
 */
export async function setUp(options: Partial<EmulatorOptions> = {}): Promise<Setup> {
  let now = noon;
  const plain: SwitchesPatch = { failureShare: 0, testEnvironmentShare: 0, truncatedShare: 0 };
  const emulator = await startEmulator({ now: () => now, ...options, switches: { ...plain, ...options.switches } });
  onTestFinished(() => emulator.close());
  const watch = watchEmulator(emulator, { strict: false });
  onTestFinished(() => expect(watch.differences).toEqual([]));
  const auth = { authorization: `Bearer ${emulator.apiKey}` };
  const get = (path: string, headers: Record<string, string> = auth) => call(emulator.url + path, { headers });
  const page = async (query = ''): Promise<Page> => {
    const reply = await get(`/scans?${query}`);
    if (reply.status !== 200) throw new Error(`feed returned ${reply.status}: ${reply.text}`);
    return reply.json as unknown as Page;
  };
  return {
    emulator,
    advance: (ms) => {
      now += ms;
    },
    get,
    page,
    drain: async (query = '') => {
      const items: Record<string, unknown>[] = [];
      let { items: latest, nextCursor: cursor } = await page(query);
      const filters = query.replace(/(^|&)(since|cursor)=[^&]*/, '');
      while (latest.length > 0) {
        items.push(...latest);
        ({ items: latest, nextCursor: cursor } = await page(`${filters}&cursor=${encodeURIComponent(cursor)}`));
      }
      return { items, cursor };
    },
    submit: (form, query = 'environment=prod', headers = {}) =>
      call(`${emulator.url}/scans?${query}`, { method: 'POST', body: form ?? null, headers: { ...auth, ...headers } }),
    control: async (method, path, body) => {
      const sent = body === undefined ? {} : { body: JSON.stringify(body), headers: jsonHeaders };
      return call(emulator.controlUrl + path, { method, ...sent });
    },
  };
}

const jsonHeaders = { 'content-type': 'application/json' };

async function call(url: string, init: RequestInit): Promise<Reply> {
  const response = await fetch(url, { redirect: 'manual', ...init });
  const text = await response.text();
  const isJson = (response.headers.get('content-type') ?? '').startsWith('application/json') && text !== '';
  return { status: response.status, headers: response.headers, text, json: isJson ? parse(text) : {} };
}

function parse(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return {};
  }
}

export interface FormParts {
  file?: string | Uint8Array | null;
  type?: string;
  name?: string;
  field?: string;
  documentType?: string | null;
}

/** Returns the form of a submission; null omits a part. */
export function form(parts: FormParts = {}): FormData {
  const { file = '%PDF-1.7\nInhalt', type = 'application/pdf', name = 'Rechnung März.pdf', field = 'file' } = parts;
  const { documentType = 'rechnung' } = parts;
  const data = new FormData();
  if (documentType !== null) data.append('documentType', documentType);
  if (file !== null) data.append(field, new Blob([file as string], { type }), name);
  return data;
}

export const ids = (items: readonly Record<string, unknown>[]): string[] => items.map((item) => String(item.scanId));

/** Returns `scanId@revision` of each entry. */
export const revisions = (items: readonly Record<string, unknown>[]): string[] =>
  items.map((item) => `${String(item.scanId)}@${String(item.revision)}`);
