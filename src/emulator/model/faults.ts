import { z } from 'zod';
import { draw } from './random.js';

/** Kinds of faults with their effects on a request. */
export const faultKinds = {
  status: 'answers with `status` and a German error body, without doing anything; `retryAfter` adds the header',
  html: 'answers with `status` (200 if not given) and an HTML page',
  answer: 'answers with `status`, `headers` and `body` verbatim',
  reset: 'destroys the connection before any answer',
  hang: 'never answers',
  empty: 'does the work, then answers with an empty body',
  half: 'does the work, then sends the first half of the body as if it were all',
  cut: 'does the work, then destroys the connection in the middle of the body (after `afterBytes`)',
  slow: 'does the work, then sends the body slowly: `dripBytes` every `dripMs`',
  'invalid-cursor': 'feed: rejects a request with a cursor, as set by the switch `cursorRefusal`',
  'empty-cursor': 'feed: `nextCursor` is an empty string',
  'missing-cursor': 'feed: the page has no `nextCursor`',
  'stuck-cursor': 'feed: `nextCursor` is the cursor that was sent',
} as const;

export type FaultKind = keyof typeof faultKinds;

export type Operation = 'feed' | 'run' | 'submit';

export const faultSchema = z
  .strictObject({
    kind: z.enum(Object.keys(faultKinds) as [FaultKind, ...FaultKind[]]),
    /** Operation that it applies to. */
    operation: z.enum(['feed', 'run', 'submit', 'any']).default('any'),
    /** Number of requests that it applies to. Without `next` and `share` it applies to all until it is removed. */
    next: z.int().min(1).optional(),
    /** Share of the requests that it applies to. */
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
  })
  .describe(
    `Effects on requests by \`kind\`:\n\n${Object.entries(faultKinds)
      .map(([kind, effect]) => `- \`${kind}\`: ${effect}`)
      .join('\n')}`,
  );

/** A fault as a script writes it. */
export type FaultInput = z.input<typeof faultSchema>;
export type Fault = z.output<typeof faultSchema>;

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
