import { createServer } from './http/server.js';
import type { FaultInput } from './model/fault-types.js';
import type { ScriptedAnswer } from './model/run-scripts.js';
import type { Correction, RunSpec } from './model/run-spec-types.js';
import { toMs } from './model/run-specs.js';
import type { RunVersion } from './model/runs.js';
import { beginning, type Content } from './model/sequence.js';
import type { Switches, SwitchesPatch } from './model/switch-types.js';
import { defaultOptions, type EmulatorOptions } from './options.js';
import { Service } from './service.js';

/** A feed entry that is sent byte for byte. Filters compare the given fields; those that it lacks pass every filter. */
export interface VerbatimSpec extends Partial<Pick<RunVersion, 'status' | 'environment'>> {
  /** A slug. */
  documentType?: string | null;
  /** JSON text, or bytes that need not even be UTF-8. */
  text: string | Uint8Array;
  /** If given, the single-run endpoint answers for this id with `run`, or else with the same text. */
  scanId?: string;
  /** The single-run response for `scanId`. Default: `text`. */
  run?: string | Uint8Array;
  /** Place in the sequence. Default: its end. */
  deliveredAt?: Date | string | number;
}

/** A running emulator. Without `organization`, methods use the first one. */
export type Emulator = Awaited<ReturnType<typeof startEmulator>>;

/** Starts an emulator and resolves when it listens. Nothing happens automatically unless a rate is set. */
export async function startEmulator(options: Partial<EmulatorOptions> = {}) {
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
    /** Base URL of the service, with `/v1`: the `baseUrl` of a client. */
    url: `${origin}/v1`,
    /** Base URL of the control routes, with `/_emulator`. */
    controlUrl: `${origin}/_emulator`,
    /** The port that it listens on. */
    port: address.port,
    /** The first API key. */
    apiKey: service.options.apiKeys[0]?.key ?? '',
    /** Counters, listeners and waiting for requests. */
    requests: service.requests,
    /** The current switches. */
    get switches(): Switches {
      return service.switches;
    },
    /** Changes switches immediately, and returns all of them. @throws Error with the problems if one is invalid; nothing changes then */
    set: (patch: SwitchesPatch) => service.patch(patch),
    /** Adds a fault after the active ones. */
    addFault: (fault: FaultInput) => service.faults.add(fault),
    /** Removes all faults. */
    clearFaults: (): void => {
      service.faults.list = [];
    },
    /** Adds a run at the end of the sequence, or at its `deliveredAt`. Omitted fields are generated. */
    appendRun: append,
    /** Adds runs at the end of the sequence, or at their `deliveredAt`. */
    appendRuns: (specs: readonly RunSpec[], organization?: string) => specs.map((spec) => append(spec, organization)),
    /** Adds `count` generated runs. */
    appendCount: (count: number, spec: RunSpec = {}, organization?: string) =>
      Array.from({ length: count }, () => append(spec, organization)),
    /** Adds entries byte for byte, however wrong. */
    appendRaw: (entries: readonly (string | Uint8Array | VerbatimSpec)[], organization?: string): void => {
      for (const entry of entries) appendRaw(service, entry, organization);
    },
    /** Scripts the single-run endpoint; several scripts are used in order. */
    answerRun: (scanId: string, answer: ScriptedAnswer) => service.runScripts.add(scanId, answer),
    /** Raises the revision of a finished run. @throws RangeError if there is none */
    correct: (scanId: string, change: Correction = {}, organization?: string) => {
      const version = service.organization(organization).correct(scanId, change, service.now());
      if (version === null) throw new RangeError(`no finished run ${scanId}`);
      return version;
    },
    /** Corrects a random run. Returns null if there is none. */
    correctAny: (change: Correction = {}, organization?: string) =>
      service.organization(organization).correctAny(change, service.now()),
    /** Rejects every cursor issued so far. */
    invalidateCursors: (organization?: string) => service.organization(organization).cursors.invalidate(service.now()),
    /** Returns the current entries of the feed, unfiltered and in order, generated lazily. */
    entries: (organization?: string): Iterable<Content> => entriesOf(service, organization),
    /** Stops listening and ends all connections. */
    close: async (): Promise<void> => server.close(),
  };
}

function appendRaw(service: Service, entry: string | Uint8Array | VerbatimSpec, name?: string): void {
  const spec = typeof entry === 'string' || entry instanceof Uint8Array ? { text: entry } : entry;
  const { text, scanId, run, deliveredAt, documentType: slug, ...given } = spec as VerbatimSpec;
  const nowMs = service.now();
  const fields = slug === undefined ? given : { ...given, documentType: { slug, name: null } };
  service.organization(name).appendVerbatim(text, fields, deliveredAt === undefined ? nowMs : toMs(deliveredAt));
  if (scanId !== undefined) service.runScripts.add(scanId, { body: run ?? text });
}

function* entriesOf(service: Service, name?: string): Generator<Content> {
  const organization = service.organization(name);
  const nowMs = service.now();
  organization.advance(nowMs);
  let from = beginning;
  for (;;) {
    const page = organization.sequence.read({ from, nowMs, limit: 200 });
    yield* page.entries;
    if (page.entries.length === 0) return;
    from = page.end;
  }
}
