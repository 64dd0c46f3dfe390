import { expect, test } from 'vitest';
import { createSharedSchemaWarning } from '../../../src/daemon/feeds/shared-schemas.js';
import type { Settings } from '../../../src/settings/settings.js';
import { recordingLogger } from '../../support/observed.js';

/** A feed with only the settings that decide. */
const feed = (apiKeyFile: string | null, schema: string) =>
  ({ service: { apiKeyFile }, database: { schema } }) as Pick<Settings, 'service' | 'database'>;

test('warns of each schema that feeds with different keys share, once until it changes', () => {
  const { logger, lines } = recordingLogger();
  const warn = createSharedSchemaWarning(logger);
  const both = [feed('a.key', 'shared'), feed('b.key', 'shared'), feed('a.key', 'own'), feed('a.key', 'own')];
  warn(both);
  warn(both);
  expect(lines).toMatchObject([
    { message: 'feeds with different keys share a schema', fields: { schemas: ['shared'] } },
  ]);
  warn([feed('a.key', 'shared'), feed('b.key', 'other')]);
  expect(lines).toHaveLength(1);
  warn(both);
  expect(lines).toHaveLength(2);
});
