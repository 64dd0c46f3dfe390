import type { FaultKind, Operation } from './faults.js';
import type { Answer } from './refusal.js';

/** A request as the emulator answered it. */
export interface RequestRecord {
  /** Counts all requests, from 1. */
  readonly number: number;
  readonly operation: Operation;
  readonly query: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** Of the path, or of the run that was created. */
  readonly scanId: string | null;
  /** Null where the request was not authenticated. */
  readonly organization: string | null;
  /** Null where no answer is sent. */
  readonly status: number | null;
  /** What a feed page held; entries passed on verbatim are not listed. */
  readonly served: readonly { readonly scanId: string; readonly revision: number }[];
  readonly nextCursor: string | null;
  readonly fault: FaultKind | null;
  /** Whether the answer holds what a script passed on byte for byte. */
  readonly verbatim: boolean;
}

/** Gets the answer too, as it is before a fault damages it on its way; null where none is sent. */
export type RequestListener = (record: RequestRecord, answer: Answer | null) => void;

/** Counts requests and tells listeners of each, just before its answer goes out. */
export class RequestLog {
  readonly #counts = new Map<Operation, number>();
  readonly #listeners = new Set<RequestListener>();
  #total = 0;

  /** Requests so far, of one operation or all. */
  count(operation?: Operation): number {
    return operation === undefined ? this.#total : (this.#counts.get(operation) ?? 0);
  }

  /** Returns a function that ends the subscription. */
  observe(listener: RequestListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The next request that fits. */
  next(fits: (record: RequestRecord) => boolean = () => true): Promise<RequestRecord> {
    return new Promise((resolve) => {
      const end = this.observe((record) => {
        if (!fits(record)) return;
        end();
        resolve(record);
      });
    });
  }

  add(record: Omit<RequestRecord, 'number'>, answer: Answer | null): void {
    this.#total++;
    this.#counts.set(record.operation, this.count(record.operation) + 1);
    for (const listener of [...this.#listeners]) listener({ ...record, number: this.#total }, answer);
  }
}
