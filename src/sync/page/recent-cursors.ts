/** Maximum number of cursors to remember: each of a thousand feeds has them in memory while they catch up. */
const MAX_REMEMBERED = 200;

export type RecentCursors = ReturnType<typeof createRecentCursors>;

/** Detects cursors that go in circles, which would be polled without a pause. */
export function createRecentCursors() {
  const remembered = new Set<string>();
  // In a longer circle one cursor is kept for 1, 2, 4, … further ones, so that it returns at last (Brent's algorithm).
  let kept = '';
  let keptFor = 1;
  let sinceKept = 0;
  const keep = (cursor: string) => {
    sinceKept += 1;
    if (sinceKept < keptFor) return;
    kept = cursor;
    keptFor *= 2;
    sinceKept = 0;
  };
  return {
    /** Remembers a cursor. Returns whether it was remembered before. */
    remember: (cursor: string | null): boolean => {
      if (cursor === null) return false;
      if (remembered.has(cursor) || cursor === kept) return true;
      keep(cursor);
      remembered.add(cursor);
      const [oldest] = remembered;
      if (remembered.size > MAX_REMEMBERED && oldest !== undefined) remembered.delete(oldest);
      return false;
    },
  };
}
