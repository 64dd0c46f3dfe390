import type { EmulatorOptions } from '../options.js';
import { CorrectionSchedule } from './correction-schedule.js';
import { CursorSeal } from './cursors.js';
import { draw, seedOf } from './random.js';
import type { Correction, RunSpec } from './run-spec-types.js';
import { reviseRun, scriptRun, toMs } from './run-specs.js';
import { type Environment, factsOf, type RunSource, type RunVersion } from './runs.js';
import { runNumberOf, scanIdOf } from './scan-ids.js';
import { type Content, type Place, type PlacedEntry, Sequence } from './sequence.js';
import { StoredCursors } from './stored-cursors.js';
import type { Switches } from './switch-types.js';
import { PERIOD_SWITCHES, Timeline } from './timeline.js';

interface OrganizationOptions extends EmulatorOptions {
  readonly name: string;
  readonly startMs: number;
}

/** A run in memory: submitted, scripted, or corrected. */
interface LiveRun {
  readonly number: number;
  readonly version: RunVersion;
  readonly entry: PlacedEntry;
}

export type FoundRun = { readonly version: RunVersion } | { readonly processing: RunVersion };

/** First number of live runs, beyond those of generated runs. */
const liveNumbers = 2 ** 31;

/** The runs, the sequence and the cursors of one organization (interface 5.2). */
export class Organization {
  readonly name: string;
  readonly sequence: Sequence;
  readonly cursors: CursorSeal;
  readonly storedCursors = new StoredCursors();
  /** The latest idempotency keys with the run that each has created, and a text that identifies its request. */
  readonly idempotency = new Map<string, { readonly request: string; readonly scanId: string }>();
  readonly #source: RunSource;
  readonly #timeline: Timeline;
  #corrections: CorrectionSchedule;
  /** Number of corrections of random runs, for drawing. */
  #chosen = 0;
  readonly #live = new Map<string, LiveRun>();
  readonly #liveLimit: number;
  #switches: Switches;
  #nextNumber = liveNumbers;

  constructor(options: OrganizationOptions, switches: Switches) {
    const seed = seedOf(options.seed, options.name);
    this.name = options.name;
    this.cursors = new CursorSeal(options.seed, options.name, options.startMs);
    this.#source = { seed, runBytes: options.runBytes };
    this.#liveLimit = options.liveLimit;
    this.#switches = switches;
    this.#timeline = new Timeline(this.#source);
    this.#timeline.addHistory(options.history, options.historyPeriodMs, options.startMs, switches);
    this.#timeline.setRate(switches.newRunsPerSecond, options.startMs, switches);
    this.#corrections = new CorrectionSchedule(switches.correctionsPerMinute, options.startMs);
    this.sequence = new Sequence(this.#timeline);
  }

  /** Adds the runs and corrections that the rates imply up to now. */
  advance(nowMs: number): void {
    for (const at of this.#corrections.due(nowMs)) this.correctAny({}, at);
  }

  /** Applies changed switches. Existing runs do not change. */
  reconfigure(switches: Switches, nowMs: number): void {
    this.advance(nowMs);
    const before = this.#switches;
    this.#switches = switches;
    const deciding = ['newRunsPerSecond', ...PERIOD_SWITCHES] as const;
    if (deciding.some((name) => before[name] !== switches[name])) {
      this.#timeline.setRate(switches.newRunsPerSecond, nowMs, switches);
    }
    if (before.correctionsPerMinute !== switches.correctionsPerMinute) {
      this.#corrections = new CorrectionSchedule(switches.correctionsPerMinute, nowMs);
    }
  }

  /** Creates a run that is processing for `processingMs` from now (interface 3). */
  submit(request: { environment: Environment; documentType: string; fileName: string }, nowMs: number): string {
    const { status } = factsOf(this.#source, this.#switches, this.#nextNumber);
    const endMs = nowMs + this.#switches.processingMs;
    const times = { submittedAt: nowMs, completedAt: endMs, deliveredAt: endMs };
    return this.append({ ...request, status, ...times }, nowMs).scanId;
  }

  rememberKey(key: string, request: string, scanId: string): void {
    this.idempotency.set(key, { request, scanId });
    const [oldest = key] = this.idempotency.keys();
    if (this.idempotency.size > this.#liveLimit) this.idempotency.delete(oldest);
  }

  /** Adds a run to the sequence; omitted fields are generated. A known scan id adds an entry of that run. */
  append(spec: RunSpec, nowMs: number): RunVersion {
    this.advance(nowMs);
    const number = this.#numberFor(spec.scanId);
    const deliveredAt = spec.deliveredAt === undefined ? nowMs : toMs(spec.deliveredAt);
    const version = scriptRun(this.#source, number, spec, { deliveredAt, processingMs: this.#switches.processingMs });
    const entry = this.sequence.place(deliveredAt, { version });
    const known = this.#live.get(version.scanId);
    if (known === undefined || known.version.revision <= version.revision) {
      this.#live.set(version.scanId, { number, version, entry });
    }
    this.#evict();
    return version;
  }

  appendVerbatim(text: string | Uint8Array, fields: Partial<RunVersion>, at: number): void {
    this.advance(at);
    this.sequence.place(at, { verbatim: { text, fields } });
    this.#evict();
  }

  /** Corrects a random run, preferring recent ones. Returns null if there is none. */
  correctAny(change: Correction, nowMs: number): RunVersion | null {
    this.advance(nowMs);
    const scanId = this.#choose(nowMs);
    return scanId === null ? null : this.correct(scanId, change, nowMs);
  }

  find(scanId: string, nowMs: number): FoundRun | null {
    this.advance(nowMs);
    const live = this.#live.get(scanId);
    if (live !== undefined) return live.version.deliveredAt <= nowMs ? live : { processing: live.version };
    const number = runNumberOf(this.#source.seed, scanId);
    if (number === null || this.#timeline.superseded.has(number) || !this.#timeline.has(number)) return null;
    const run = this.#timeline.run(number);
    if (run.deliveredAt <= nowMs) return { version: this.#timeline.version(number) };
    return run.submittedAt <= nowMs ? { processing: this.#timeline.version(number) } : null;
  }

  /** Raises a finished run's revision and delivers it again (interface 3, 4.2 rule 4). Null if there is no such run. */
  correct(scanId: string, change: Correction, nowMs: number): RunVersion | null {
    this.advance(nowMs);
    const found = this.find(scanId, nowMs);
    if (found === null || 'processing' in found) return null;
    const old = found.version;
    const live = this.#live.get(scanId);
    const number = live?.number ?? (runNumberOf(this.#source.seed, scanId) as number);
    const oldPlace = live?.entry ?? { at: old.deliveredAt, order: number };
    const redelivery = change.redelivery ?? this.#switches.redelivery;
    const scripted = change.deliveredAt === undefined ? null : toMs(change.deliveredAt);
    const deliveredAt = scripted ?? this.#redeliveryTime(oldPlace, nowMs, redelivery);
    const placedAt = scripted === null && redelivery === 'in-place' ? oldPlace.at : deliveredAt;
    const version = reviseRun(this.#source, number, old, change, deliveredAt);
    if (this.#switches.superseded === 'removed' && live !== undefined) this.sequence.remove(live.entry);
    if (live === undefined) this.#timeline.superseded.set(number, this.#switches.superseded);
    this.#live.set(scanId, { number, version, entry: this.sequence.place(placedAt, { version }) });
    this.#evict();
    return version;
  }

  /**
   * Returns the delivery time of a new revision. `ahead`: now, after every stored cursor. `in-place`: now as well, but the entry
   * keeps its place in the sequence. `behind`: just before its old place, or just before the lowest cursor that a client may
   * hold, so that no client reaches it by continuing.
   */
  #redeliveryTime(old: Place, at: number, redelivery: Switches['redelivery']): number {
    if (redelivery !== 'behind') return at;
    const stored = this.storedCursors.lowest(at);
    return Math.min(old.at, stored === null ? old.at : stored.at) - 1;
  }

  /** Returns a random finished run, or null if the chosen one cannot be corrected. */
  #choose(nowMs: number): string | null {
    const event = this.#chosen++;
    const generated = this.#timeline.countAt(nowMs);
    const placed = this.sequence.placed;
    const total = generated + placed.length;
    if (total === 0) return null;
    const position = Math.floor(draw(this.#source.seed, event, 70) * total);
    if (position < generated) {
      return scanIdOf(this.#source.seed, this.#timeline.recent(generated, event));
    }
    const content: Content | undefined = placed[position - generated]?.content;
    return content !== undefined && 'version' in content ? content.version.scanId : null;
  }

  #numberFor(scanId: string | undefined): number {
    if (scanId === undefined) return this.#nextNumber++;
    return this.#live.get(scanId)?.number ?? runNumberOf(this.#source.seed, scanId) ?? this.#nextNumber++;
  }

  #evict(): void {
    while (this.sequence.placed.length > this.#liveLimit) {
      const first = this.sequence.placed[0] as PlacedEntry;
      this.sequence.remove(first);
      if (!('version' in first.content)) continue;
      const { scanId } = first.content.version;
      if (this.#live.get(scanId)?.entry === first) this.#live.delete(scanId);
    }
  }
}
