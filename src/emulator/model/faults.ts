import { z } from 'zod';
import { type Fault, type FaultInput, type FaultKind, faultKinds, type Operation } from './fault-types.js';
import { draw } from './random.js';

export const faultSchema = z.strictObject({
  kind: z.enum(Object.keys(faultKinds) as [FaultKind, ...FaultKind[]]),
  operation: z.enum(['feed', 'run', 'submit', 'any']).default('any'),
  next: z.int().min(1).optional(),
  share: z.number().min(0).max(1).optional(),
  status: z.int().min(200).max(599).optional(),
  retryAfter: z.union([z.string(), z.number()]).optional(),
  error: z.string().optional(),
  headers: z.record(z.string(), z.string()).optional(),
  body: z.string().optional(),
  afterBytes: z.int().min(0).optional(),
  dripBytes: z.int().min(1).default(16),
  dripMs: z.number().min(0).default(100),
  chunked: z.boolean().default(false),
});

faultSchema satisfies z.ZodType<Fault, FaultInput>;

const cursorKinds: readonly FaultKind[] = ['invalid-cursor', 'empty-cursor', 'missing-cursor', 'stuck-cursor'];

/** The active faults. The first one that applies to a request is used. */
export class FaultBox {
  list: readonly Fault[] = [];
  #requests = 0;

  constructor(readonly seed: number) {}

  add(fault: FaultInput): void {
    this.list = [...this.list, faultSchema.parse(fault)];
  }

  take(operation: Operation, hasCursor: boolean): Fault | null {
    const request = this.#requests++;
    const found = this.list.findIndex((fault, index) => {
      if (fault.operation !== 'any' && fault.operation !== operation) return false;
      if (cursorKinds.includes(fault.kind) && operation !== 'feed') return false;
      if (fault.kind === 'invalid-cursor' && !hasCursor) return false;
      return fault.share === undefined || draw(this.seed, request, 40 + index) < fault.share;
    });
    const fault = this.list[found];
    if (fault === undefined) return null;
    if (fault.next === 1) this.list = this.list.toSpliced(found, 1);
    else if (fault.next !== undefined) this.list = this.list.with(found, { ...fault, next: fault.next - 1 });
    return fault;
  }
}
