import { type Cancellable, requireOptions, ServiceClient } from '../service/client.js';
import { wrongShapeError } from '../service/errors/body-errors.js';
import { type FeedQuery, feedRequestOf } from '../service/feed-query.js';
import { readUntilRecognized } from '../service/run-pauses.js';
import { sleepUntilAny } from '../sync/waiting/wake-up.js';
import type { ProcessingRun, Run } from './entry-types.js';
import { isUnusable, readSingleRun } from './read-entry.js';
import { type SortedEntries, sortEntries } from './sort-entries.js';

/** A page of the feed (interface 2.3). */
export interface FeedPage extends SortedEntries {
  /** Store it after the entries, or with them (interface 4.2 rule 5). Null if the service has not sent a usable one. */
  readonly cursor: string | null;
  /** The page as received: JSON, UTF-8. */
  readonly body: Uint8Array;
}

/** Options for reading a single run. */
export interface GetRunOptions extends Cancellable {
  /** Whether to load the recognized text. Default false. */
  readonly markdown?: boolean | undefined;
}

/**
 * Client of the Document Recognition Service. Any number of requests can run concurrently. Every method rejects with a
 * `ServiceError`, or with the reason of the given signal. Requests are not retried, except once for a GET on a kept-alive
 * connection that the service was closing; `followFeed` and `waitForRun` retry.
 *
 * `feedPage`, `getRun` and `submit` return typed objects; `readPage` and `readRun` the bytes as received, with every digit.
 */
export class RecognitionClient extends ServiceClient {
  /**
   * Reads one page of the feed (interface 4.2). `followFeed` reads all of them.
   * @throws InvalidArgumentError, or any `ServiceError` of the request
   */
  async feedPage(options: FeedQuery & Cancellable = {}, ...more: readonly never[]): Promise<FeedPage> {
    requireOptions(options, more);
    const { signal, ...query } = options;
    const page = await this.readPage(feedRequestOf(query), signal);
    return { ...sortEntries(page), cursor: page.nextCursor || null, body: page.body };
  }

  /**
   * Reads a single run in full (interface 4.3). Its status may be `processing`, and its revision newer than that of the feed's
   * entry.
   * @throws ServiceError of the kind `wrong_shape` if the response does not match the interface or is another run
   */
  async getRun(scanId: string, options: GetRunOptions = {}, ...more: readonly never[]): Promise<Run> {
    requireOptions(options, more);
    const { markdown = false, signal } = options;
    const { body } = await this.readRun(scanId, { markdown }, signal);
    const run = readSingleRun(JSON.parse(new TextDecoder().decode(body)) as Readonly<Record<string, unknown>>);
    if (isUnusable(run)) throw wrongShapeError(200, 'the run', [run.detail]);
    if (run.scanId !== scanId) throw wrongShapeError(200, 'the run', ['scanId (another run)']);
    return run;
  }

  /**
   * Waits until a run is recognized, and reads it in full. It is requested with pauses of up to ten seconds, or as long as the service
   * asks for. Temporary failures are retried for about two minutes, among them that the id is unknown.
   * @param options as for `getRun`; the signal ends the wait
   * @throws the failure of the last request
   */
  async waitForRun(
    scanId: string,
    options: GetRunOptions = {},
    ...more: readonly never[]
  ): Promise<Exclude<Run, ProcessingRun>> {
    requireOptions(options, more);
    const { signal = new AbortController().signal } = options;
    return readUntilRecognized(
      async () => {
        const run = await this.getRun(scanId, options);
        return run.status === 'processing' ? null : run;
      },
      async (pauseMs) => {
        await sleepUntilAny(this.clock, pauseMs, signal, this.closed);
        signal.throwIfAborted();
      },
    );
  }
}
