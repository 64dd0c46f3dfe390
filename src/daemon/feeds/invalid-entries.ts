import type { Logger } from '../../observability/log/logger.js';
import type { InvalidEntry } from '../../observability/status-page/feed-list.js';
import type { FeedsFile } from '../../settings/feeds-file.js';
import { describeMistake } from '../../settings/mistakes.js';

export type InvalidEntries = ReturnType<typeof createInvalidEntries>;

/** Keeps the invalid entries of the feeds file, and logs each one when it is new or has other mistakes. */
export function createInvalidEntries(logger: Logger) {
  let entries: readonly InvalidEntry[] = [];
  return {
    entries: () => entries,
    report(invalid: FeedsFile['invalid']): void {
      const before = new Map(entries.map(({ name, mistakes }) => [name, mistakes.join()]));
      entries = invalid.map(({ name, mistakes }) => ({ name, mistakes: mistakes.map(describeMistake) }));
      for (const { name, mistakes } of entries) {
        if (before.get(name) !== mistakes.join()) {
          const remedy = 'correct the entry; until then its last valid version, if any, stays in force';
          logger.error('invalid entry in the feeds file', { feed: name, mistakes, remedy });
        }
        before.delete(name);
      }
      for (const name of before.keys()) logger.info('feeds file entry fixed or removed', { feed: name });
    },
  };
}
