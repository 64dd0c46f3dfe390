import type { Logger } from '../../observability/log/logger.js';
import type { Settings } from '../../settings/settings.js';

/**
 * Returns a function that warns of schemas that feeds with different keys share, unless the same ones were reported last. The keys
 * may belong to one organization, so this is no mistake.
 */
export function createSharedSchemaWarning(logger: Pick<Logger, 'warn'>) {
  let reported = '';
  return (feeds: readonly Pick<Settings, 'service' | 'database'>[]): void => {
    const schemas = sharedSchemas(feeds);
    const names = schemas.join();
    if (schemas.length > 0 && names !== reported) {
      const remedy =
        'if the keys belong to different organizations, give each a schema: scan ids are unique only within one';
      logger.warn('feeds with different keys share a schema', { schemas, remedy });
    }
    reported = names;
  };
}

/** Returns the names of the schemas of feeds whose keys come from different files. */
function sharedSchemas(feeds: readonly Pick<Settings, 'service' | 'database'>[]): readonly string[] {
  const keysOf = new Map<string, Set<string | null>>();
  for (const { service, database } of feeds) {
    const keys = keysOf.get(database.schema) ?? new Set();
    keysOf.set(database.schema, keys.add(service.apiKeyFile));
  }
  return [...keysOf].filter(([, keys]) => keys.size > 1).map(([schema]) => schema);
}
