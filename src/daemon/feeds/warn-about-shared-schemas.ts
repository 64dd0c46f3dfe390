import type { Logger } from '../../observability/log/logger.js';
import type { Settings } from '../../settings/settings.js';

type KeySettings = Pick<Settings, 'service' | 'database'>;

/** Warns of schemas that feeds with different keys share. The keys may belong to one organization, so this is no mistake. */
export function warnAboutSharedSchemas(feeds: readonly KeySettings[], logger: Pick<Logger, 'warn'>): void {
  const schemas = sharedSchemas(feeds);
  if (schemas.length === 0) return;
  const remedy =
    'if the keys belong to different organizations, give each a schema: scan ids are unique only within one';
  logger.warn('schema shared by different keys', { schemas, remedy });
}

/** Returns the names of the schemas of feeds whose keys come from different files. */
function sharedSchemas(feeds: readonly KeySettings[]): readonly string[] {
  const keysOf = new Map<string, Set<string | null>>();
  for (const { service, database } of feeds) {
    const keys = keysOf.get(database.schema) ?? new Set();
    keysOf.set(database.schema, keys.add(service.apiKeyFile));
  }
  return [...keysOf].filter(([, keys]) => keys.size > 1).map(([schema]) => schema);
}
