import type { BodyBounds, FeedRequest, FeedService, FeedStart, RawPage, RawRun } from '../../src/sync/ports/index.js';
import { pageJson } from '../support/entries.js';
import { rawPage, rawRun } from '../support/pages.js';
import { ModelFailure } from './model-failure.js';

export { ModelFailure } from './model-failure.js';

export interface ModelServiceOptions {
  /** Called before each response; throws to fail the request, or waits. */
  readonly before?: (operation: 'feed' | 'run', request: FeedRequest | string, signal: AbortSignal) => Promise<void>;
  /** Whether cursors change with every poll, also at the end. */
  readonly movingCursors?: boolean;
}

/** The service in memory: a sequence of entries in delivery order, cursors that are positions in it, and runs by scan id. */
export class ModelService implements FeedService {
  /** JSON texts in delivery order. */
  readonly feed: string[] = [];
  /** Responses of the single-run endpoint, JSON texts by scan id. */
  readonly runs = new Map<string, string>();
  readonly requests: (FeedRequest | string)[] = [];
  #polls = 0;

  constructor(private readonly options: ModelServiceOptions = {}) {}

  async readPage(request: FeedRequest & Partial<BodyBounds>, signal: AbortSignal): Promise<RawPage> {
    this.requests.push(request);
    await this.options.before?.('feed', request, signal);
    signal.throwIfAborted();
    const from = this.#placeOf(request.start);
    const entries = this.feed.slice(from, from + request.limit);
    this.#polls += 1;
    return bounded(rawPage(pageJson(entries, this.#cursorAt(from + entries.length))), request, signal);
  }

  async readRun(scanId: string, options: Partial<BodyBounds>, signal: AbortSignal): Promise<RawRun> {
    this.requests.push(scanId);
    await this.options.before?.('run', scanId, signal);
    signal.throwIfAborted();
    const run = this.runs.get(scanId);
    if (run === undefined) throw new ModelFailure('http_404');
    return bounded(rawRun(run), options, signal);
  }

  #placeOf(start: FeedStart): number {
    if ('cursor' in start) return positionOf(start.cursor);
    if ('beginning' in start) return 0;
    const place = this.feed.findIndex((entry) => !(deliveryOf(entry) < start.since.getTime()));
    return place === -1 ? this.feed.length : place;
  }

  #cursorAt(position: number): string {
    return this.options.movingCursors ? `${position}.${this.#polls}` : `${position}`;
  }
}

/** Like the client: reports the size first, and rejects responses that are too large. */
async function bounded<T extends { readonly body: Uint8Array }>(
  answer: T,
  { maxBytes, reserve }: Partial<BodyBounds>,
  signal: AbortSignal,
): Promise<T> {
  if (answer.body.length > (maxBytes ?? Number.POSITIVE_INFINITY)) throw new ModelFailure('too_large', 'hold');
  await reserve?.(answer.body.length);
  signal.throwIfAborted();
  return answer;
}

function positionOf(cursor: string): number {
  return Number(cursor.split('.')[0]);
}

/** Returns the delivery time of an entry; NaN if it has none. */
function deliveryOf(entry: string): number {
  const { deliveredAt } = (JSON.parse(entry) ?? {}) as { deliveredAt?: string };
  return Date.parse(deliveredAt ?? '');
}
