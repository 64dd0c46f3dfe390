import { createServer } from './http/server.js';
import type { FaultInput } from './model/fault-types.js';
import type { RequestLog } from './model/request-log.js';
import type { ScriptedAnswer } from './model/run-scripts.js';
import type { Correction, RunSpec } from './model/run-spec-types.js';
import { toMs } from './model/run-specs.js';
import type { FilterFacts, RunVersion } from './model/runs.js';
import { beginning, type Content } from './model/sequence.js';
import type { Switches, SwitchesPatch } from './model/switch-types.js';
import { defaultOptions, type EmulatorOptions } from './options.js';
import { Service } from './service.js';

/** A feed entry that is sent byte for byte. Facts that it lacks pass every filter. */
export interface VerbatimSpec extends Partial<FilterFacts> {
  /** JSON text, or bytes that need not even be UTF-8. */
  text: string | Uint8Array;
  /** If given, the single-run endpoint answers for this id with `run`, or else with the same text. */
  scanId?: string;
  /** The single-run answer for `scanId`. Default: `text`. */
  run?: string | Uint8Array;
  /** Place in the sequence. Default: its end. */
  deliveredAt?: Date | string | number;
}

/** A running emulator. Without `organization`, methods use the first one. */
export interface Emulator {
  /** Base URL of the service, with `/v1`: the `baseUrl` of a client. */
  readonly url: string;
  /** Base URL of the control routes, with `/_emulator`. */
  readonly controlUrl: string;
  /** The port that it listens on. */
  readonly port: number;
  /** The first API key. */
  readonly apiKey: string;
  /** Counters, listeners and waiting for requests. */
  readonly requests: RequestLog;
  /** The current switches. */
  readonly switches: Switches;
  /**
   * Changes switches immediately, and returns all of them. @throws Error with the problems if one is invalid; nothing changes then
   */
  set(patch: SwitchesPatch): Switches;
  /** Adds a fault after the active ones. */
  addFault(fault: FaultInput): void;
  /** Removes all faults. */
  clearFaults(): void;
  /** Adds a run at the end of the sequence, or at its `deliveredAt`. Omitted fields are generated. */
  appendRun(spec?: RunSpec, organization?: string): RunVersion;
  /** Adds runs at the end of the sequence, or at their `deliveredAt`. */
  appendRuns(specs: readonly RunSpec[], organization?: string): RunVersion[];
  /** Adds `count` generated runs. */
  appendCount(count: number, spec?: RunSpec, organization?: string): RunVersion[];
  /** Adds entries byte for byte, however wrong. */
  appendRaw(entries: readonly (string | Uint8Array | VerbatimSpec)[], organization?: string): void;
  /** Scripts the single-run endpoint; several scripts are used in order. */
  answerRun(scanId: string, answer: ScriptedAnswer): void;
  /** Raises the revision of a finished run. @throws RangeError if there is none */
  correct(scanId: string, change?: Correction, organization?: string): RunVersion;
  /** Corrects a random run. Returns null if there is none. */
  correctAny(change?: Correction, organization?: string): RunVersion | null;
  /** Rejects every cursor issued so far. */
  invalidateCursors(organization?: string): void;
  /** Returns the current entries of the feed, unfiltered and in order, generated lazily. */
  entries(organization?: string): Iterable<Content>;
  /** Stops listening and ends all connections. */
  close(): Promise<void>;
}

/** Starts an emulator and resolves when it listens. Nothing happens automatically unless a rate is set. */
export async function startEmulator(options: Partial<EmulatorOptions> = {}): Promise<Emulator> {
  const service = new Service({ ...defaultOptions, ...options });
  const server = createServer(service);
  const { host, port: wanted } = service.options;
  await server.listen({ host, port: wanted });
  const address = server.server.address();
  if (address === null || typeof address === 'string') throw new TypeError('the emulator listens on no TCP port');
  const reachable = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  const origin = `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${address.port}`;
  const append = (spec: RunSpec = {}, organization?: string) =>
    service.organization(organization).append(spec, service.now());
  return {
    url: `${origin}/v1`,
    controlUrl: `${origin}/_emulator`,
    port: address.port,
    apiKey: service.options.apiKeys[0]?.key ?? '',
    requests: service.requests,
    get switches() {
      return service.switches;
    },
    set: (patch) => service.patch(patch),
    addFault: (fault) => service.faults.add(fault),
    clearFaults: () => {
      service.faults.list = [];
    },
    appendRun: append,
    appendRuns: (specs, organization) => specs.map((spec) => append(spec, organization)),
    appendCount: (count, spec = {}, organization) => Array.from({ length: count }, () => append(spec, organization)),
    appendRaw: (entries, organization) => {
      for (const entry of entries) appendRaw(service, entry, organization);
    },
    answerRun: (scanId, answer) => service.runScripts.add(scanId, answer),
    correct: (scanId, change = {}, organization) => {
      const version = service.organization(organization).correct(scanId, change, service.now());
      if (version === null) throw new RangeError(`no finished run ${scanId}`);
      return version;
    },
    correctAny: (change = {}, organization) => service.organization(organization).correctAny(change, service.now()),
    invalidateCursors: (organization) => service.organization(organization).cursors.invalidate(service.now()),
    entries: (organization) => entriesOf(service, organization),
    close: () => server.close(),
  };
}

function appendRaw(service: Service, entry: string | Uint8Array | VerbatimSpec, name?: string): void {
  const spec = typeof entry === 'string' || entry instanceof Uint8Array ? { text: entry } : entry;
  const { text, scanId, run, deliveredAt, ...facts } = spec as VerbatimSpec;
  const nowMs = service.now();
  service.organization(name).appendVerbatim(text, facts, deliveredAt === undefined ? nowMs : toMs(deliveredAt));
  if (scanId !== undefined) service.runScripts.add(scanId, { body: run ?? text });
}

function* entriesOf(service: Service, name?: string): Generator<Content> {
  const organization = service.organization(name);
  const nowMs = service.now();
  organization.advance(nowMs);
  let from = beginning;
  for (;;) {
    const page = organization.sequence.read({ from, nowMs, limit: 200, scanLimit: 10_000, accepts: () => true });
    yield* page.entries;
    if (page.entries.length === 0) return;
    from = page.end;
  }
}
