import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Place } from './sequence.js';

/**
 * Cursors are signed places in the sequence, so that a client cannot construct them. The key depends on the seed and the
 * organization: a cursor of another organization is invalid. A cursor from before a restart with the same seed is valid if
 * its place is before that restart: later places were not delivered yet, even if the clock was ahead before. A restart
 * forgets earlier invalidations.
 */
export class CursorSeal {
  readonly #key: string;
  /** Time of the last invalidation, milliseconds since 1970; 0 if there was none. */
  #invalidatedMs = 0;
  #polls = 0;

  /** @param startMs start time of this emulator by its clock, milliseconds since 1970 */
  constructor(
    seed: number,
    organization: string,
    readonly startMs: number,
  ) {
    this.#key = `${seed}/${organization}`;
  }

  /**
   * Returns a cursor. `moving` cursors differ with every call, `stable` ones only with the place.
   * @param filters filters that the cursor is bound to; an empty text for none
   * @param length minimum length, characters
   */
  issue(place: Place, style: 'stable' | 'moving', filters: string, length: number): string {
    const poll = style === 'moving' ? ++this.#polls : 0;
    const fields: CursorFields = [place.at, place.order, this.#invalidatedMs, this.startMs, filters, poll];
    const body = Buffer.from(JSON.stringify(fields));
    return Buffer.concat([this.#mac(body), body])
      .toString('base64url')
      .padEnd(length, PADDING);
  }

  /**
   * Returns the cursor's place. Returns null if the cursor is malformed, forged, was issued before {@link invalidate}, is bound
   * to other filters, or its place is after a restart of the emulator that issued it.
   */
  open(cursor: string, filters: string): Place | null {
    const sealed = cursor.replace(/\.+$/, '');
    const bytes = Buffer.from(sealed, 'base64url');
    if (bytes.length <= macBytes || bytes.toString('base64url') !== sealed) return null;
    const body = bytes.subarray(macBytes);
    if (!timingSafeEqual(bytes.subarray(0, macBytes), this.#mac(body))) return null;
    const [at, order, invalidatedMs, startMs, boundTo] = JSON.parse(body.toString()) as CursorFields;
    if (invalidatedMs < this.#invalidatedMs) return null;
    if (boundTo !== '' && boundTo !== filters) return null;
    if (startMs !== this.startMs && at >= this.startMs) return null;
    return { at, order };
  }

  /** Rejects every cursor issued so far, also before a restart. */
  invalidate(nowMs: number): void {
    this.#invalidatedMs = Math.max(this.#invalidatedMs + 1, nowMs);
  }

  #mac(body: Buffer): Buffer {
    return createHmac('sha256', this.#key).update(body).digest().subarray(0, macBytes);
  }
}

type CursorFields = [at: number, order: number, invalidatedMs: number, startMs: number, filters: string, poll: number];

const macBytes = 9;
/** A character that base64url does not use. */
const PADDING = '.';
