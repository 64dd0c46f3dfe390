/** Maximum number of cursors to remember, enough for any circle that a service might produce by mistake. */
const REMEMBERED = 1_000;

/** Notices a cursor that returns: the feed goes in circles, and polling without a pause would spin. */
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
