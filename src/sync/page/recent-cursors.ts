/**
 * Maximum number of cursors to remember, enough for any circle that a service might return by mistake. Each of a thousand feeds
 * may have so many in memory while they catch up.
 */
const MAX_REMEMBERED = 200;

/** Detects cursors that go in circles, which would be polled without a pause. */
export interface RecentCursors {
  /** Remembers a cursor. Returns whether it was remembered before. */
  remember(cursor: string | null): boolean;
}

export function createRecentCursors(): RecentCursors {
  const remembered = new Set<string>();
  return {
    remember: (cursor) => {
      if (cursor === null) return false;
      if (remembered.has(cursor)) return true;
      remembered.add(cursor);
      const [oldest] = remembered;
      if (remembered.size > MAX_REMEMBERED && oldest !== undefined) remembered.delete(oldest);
      return false;
    },
  };
}
