import { z } from 'zod';
import { type FaultKind, faultKinds } from './fault-kinds.js';
import { draw } from './random.js';

export type Operation = 'feed' | 'run' | 'submit';

export const faultSchema = z.strictObject({
  kind: z.enum(Object.keys(faultKinds) as [FaultKind, ...FaultKind[]]),
  /** Requests it applies to. */
  operation: z.enum(['feed', 'run', 'submit', 'any']).default('any'),
  /** Applies to the next N such requests, then it is gone. Without `next` and `share` it applies to all, until cleared. */
  next: z.int().min(1).optional(),
  /** Applies to this share of such requests. */
  share: z.number().min(0).max(1).optional(),
  status: z.int().min(200).max(599).optional(),
  /** Seconds or an HTTP date. */
  retryAfter: z.union([z.string(), z.number()]).optional(),
  /** The German text of the error body. */
  error: z.string().optional(),
  headers: z.record(z.string(), z.string()).optional(),
  body: z.string().optional(),
  afterBytes: z.int().min(0).optional(),
  dripBytes: z.int().min(1).default(16),
  dripMs: z.number().min(0).default(100),
  /** Sends damaged bodies chunked, without Content-Length. */
  chunked: z.boolean().default(false),
});

/** A fault as a script writes it. */
export type FaultInput = z.input<typeof faultSchema>;
export type Fault = z.output<typeof faultSchema>;

const cursorKinds: readonly FaultKind[] = ['invalid-cursor', 'empty-cursor', 'missing-cursor', 'stuck-cursor'];

/** The faults that are set. The first that applies to a request is used; the others wait. */
export class FaultBox {
  #faults: Fault[] = [];
  #requests = 0;
  readonly #seed: number;

  constructor(seed: number) {
    this.#seed = seed;
  }

  get list(): readonly Fault[] {
    return this.#faults;
  }

  add(fault: FaultInput): void {
    this.#faults.push(faultSchema.parse(fault));
  }

  replace(faults: readonly FaultInput[]): void {
    this.#faults = faults.map((fault) => faultSchema.parse(fault));
  }

  clear(): void {
    this.#faults = [];
  }

  take(operation: Operation, hasCursor: boolean): Fault | null {
    const request = this.#requests++;
    const found = this.#faults.findIndex((fault, index) => {
      if (fault.operation !== 'any' && fault.operation !== operation) return false;
      if (cursorKinds.includes(fault.kind) && operation !== 'feed') return false;
      if (fault.kind === 'invalid-cursor' && !hasCursor) return false;
      return fault.share === undefined || draw(this.#seed, request, 40 + index) < fault.share;
    });
    const fault = this.#faults[found];
    if (fault === undefined) return null;
    if (fault.next === 1) this.#faults.splice(found, 1);
    else if (fault.next !== undefined) this.#faults[found] = { ...fault, next: fault.next - 1 };
    return fault;
  }
}
