/** Runs a statement that waits for the row of a feed. Returns null, without running it, while another one waits. */
export type RowWait = <T>(statement: () => Promise<T>) => Promise<T> | null;

/** Limits the statements that wait for rows to one, so that they do not use up the connections. */
export function createRowWait(): RowWait {
  let isWaiting = false;
  return (statement) => {
    if (isWaiting) return null;
    isWaiting = true;
    return statement().finally(() => {
      isWaiting = false;
    });
  };
}
