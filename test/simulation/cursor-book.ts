/** How the service currently issues cursors. `stalled`: the request's own cursor; `circling`: an earlier one. */
export type CursorMode = 'ordinary' | 'empty' | 'stalled' | 'circling';

/**
 * The cursors of a service: positions in its sequence. It may forget all issued cursors, or those beyond a position, as after
 * a restore. Format: `generation:position`, then `/poll` if every poll has its own cursor, then `#filters` if cursors are
 * bound to filters.
 */
export class CursorBook {
  /** By generation: the position up to which cursors of earlier generations are still known. */
  readonly #limits: number[] = [Number.POSITIVE_INFINITY];
  #issued: string[] = [];
  #polls = 0;

  constructor(private readonly moving: boolean) {}

  issue(position: number, filters: string): string {
    this.#polls += 1;
    const cursor = `${this.#limits.length - 1}:${position}${this.moving ? `/${this.#polls}` : ''}${filters && `#${filters}`}`;
    this.#issued.push(cursor);
    return cursor;
  }

  /** Returns a random known cursor at or before a position that may be used with these filters; null if the draw misses. */
  earlier(random: number, upTo: number, filters: string): string | null {
    const cursor = this.#issued[Math.floor(random * this.#issued.length)];
    return cursor !== undefined && positionOf(cursor) <= upTo && isBoundTo(cursor, filters) ? cursor : null;
  }

  /** Forgets all cursors issued so far that are beyond a position. */
  forgetBeyond(position: number): void {
    this.#limits.push(position);
    this.#issued = this.#issued.filter((cursor) => this.knows(cursor));
  }

  knows(cursor: string): boolean {
    const generation = Number(cursor.split(':')[0]);
    const position = positionOf(cursor);
    return this.#limits.slice(generation + 1).every((limit) => position <= limit);
  }
}

export function positionOf(cursor: string): number {
  return Number(cursor.slice(cursor.indexOf(':') + 1).split(/[/#]/)[0]);
}

/** Returns whether a cursor may be used with these filters. */
export function isBoundTo(cursor: string, filters: string): boolean {
  const [, boundTo] = cursor.split('#');
  return boundTo === undefined || boundTo === filters;
}
