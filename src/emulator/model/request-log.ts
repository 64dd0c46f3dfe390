import type { FaultKind, Operation } from './fault-types.js';
import type { Answer } from './refusal.js';

/** A request with details of its response. */
export interface RequestRecord {
  /** Sequence number of the request, from 1. */
  readonly number: number;
  /** The operation of the service. */
  readonly operation: Operation;
  /** The query parameters; a repeated one has a list. */
  readonly query: Readonly<Record<string, unknown>>;
  /** The headers of the request, in lower case. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** Scan id in the path, or of the created run. */
  readonly scanId: string | null;
  /** Null if the request was not authenticated. */
  readonly organization: string | null;
  /** Null if no response is sent. */
  readonly status: number | null;
  /** Runs in a page of the feed, without verbatim entries. */
  readonly served: readonly { readonly scanId: string; readonly revision: number }[];
  /** The `nextCursor` of a page, if it has one. */
  readonly nextCursor: string | null;
  /** The fault that applied to the request. */
  readonly fault: FaultKind | null;
  /** Whether the response contains verbatim bytes of a script. */
  readonly verbatim: boolean;
}

/** Called with each request and its response before damage by a fault, or null if no response is sent. */
export type RequestListener = (record: RequestRecord, answer: Answer | null) => void;

/** Counts requests and notifies listeners of each one just before its response is sent. */
export class RequestLog {
  readonly #counts = new Map<Operation, number>();
  readonly #listeners = new Set<RequestListener>();
  #total = 0;

  /** Returns the number of requests of one operation or of all. */
  count(operation?: Operation): number {
    return operation === undefined ? this.#total : (this.#counts.get(operation) ?? 0);
  }

  /** Returns a function that ends the subscription. */
  observe(listener: RequestListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Resolves to the next matching request. */
  next(fits: (record: RequestRecord) => boolean = () => true): Promise<RequestRecord> {
    return new Promise((resolve) => {
      const end = this.observe((record) => {
        if (!fits(record)) return;
        end();
        resolve(record);
      });
    });
  }

  /** Adds a request. @internal */
  add(record: Omit<RequestRecord, 'number'>, answer: Answer | null): void {
    this.#total++;
    this.#counts.set(record.operation, this.count(record.operation) + 1);
    for (const listener of [...this.#listeners]) listener({ ...record, number: this.#total }, answer);
  }
}
