/** Cursors remembered, enough for any loop that a service could run into by mistake. */
const REMEMBERED = 1_000;

/** Notices a cursor that comes back: the feed goes in circles, and polling on at once would spin. */
export interface RecentCursors {
  /** Whether this cursor was reached before; remembers it. */
  seen(cursor: string | null): boolean;
}

export function createRecentCursors(): RecentCursors {
  const remembered = new Set<string>();
  return {
    seen: (cursor) => {
      if (cursor === null) return false;
      if (remembered.has(cursor)) return true;
      remembered.add(cursor);
      const [oldest] = remembered;
      if (remembered.size > REMEMBERED && oldest !== undefined) remembered.delete(oldest);
      return false;
    },
  };
}
