/** How the service issues cursors now. `stalled`: the one that was sent; `circling`: an earlier one. */
export type CursorMode = 'ordinary' | 'empty' | 'stalled' | 'circling';

/**
 * The cursors of a service: places in its sequence. It may forget all that it handed out, or those beyond a place, as
 * after a restore. `generation:place`, the number of the poll where every poll gets its own, and the filters where it
 * is bound to them.
 */
export class CursorBook {
  /** By generation: up to which place it still knows the cursors of the generations before. */
  readonly #limits: number[] = [Number.POSITIVE_INFINITY];
  #issued: string[] = [];
  #polls = 0;

  constructor(private readonly moving: boolean) {}

  issue(place: number, filters: string): string {
    this.#polls += 1;
    const cursor = `${this.#limits.length - 1}:${place}${this.moving ? `/${this.#polls}` : ''}${filters && `#${filters}`}`;
    this.#issued.push(cursor);
    return cursor;
  }

  /** One that was handed out before, is still known, may be used with these filters, and leads to this place or before it. */
  earlier(random: number, upTo: number, filters: string): string | null {
    const cursor = this.#issued[Math.floor(random * this.#issued.length)];
    return cursor !== undefined && placeOf(cursor) <= upTo && isBoundTo(cursor, filters) ? cursor : null;
  }

  /** Forgets the cursors issued so far that are beyond the position. */
  forgetBeyond(place: number): void {
    this.#limits.push(place);
    this.#issued = this.#issued.filter((cursor) => this.knows(cursor));
  }

  knows(cursor: string): boolean {
    const generation = Number(cursor.split(':')[0]);
    const place = placeOf(cursor);
    return this.#limits.slice(generation + 1).every((limit) => place <= limit);
  }
}

export function placeOf(cursor: string): number {
  return Number(cursor.slice(cursor.indexOf(':') + 1).split(/[/#]/)[0]);
}

/** Whether the cursor may be used with these filters. */
export function isBoundTo(cursor: string, filters: string): boolean {
  const [, boundTo] = cursor.split('#');
  return boundTo === undefined || boundTo === filters;
}
