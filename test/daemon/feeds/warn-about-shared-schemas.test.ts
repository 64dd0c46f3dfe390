import { expect, test } from 'vitest';
import { warnAboutSharedSchemas } from '../../../src/daemon/feeds/warn-about-shared-schemas.js';
import type { Settings } from '../../../src/settings/settings.js';
import { recordingLogger } from '../../support/observed.js';

/** A feed with only the settings that decide. */
const feed = (apiKeyFile: string | null, schema: string) =>
  ({ service: { apiKeyFile }, database: { schema } }) as Pick<Settings, 'service' | 'database'>;

test('warns of each schema when feeds with different keys share it', () => {
  const { logger, lines } = recordingLogger();
  const own = [feed('a.key', 'own'), feed('a.key', 'own')];
  warnAboutSharedSchemas([feed('a.key', 'shared'), feed('b.key', 'shared'), ...own], logger);
  expect(lines).toMatchObject([{ message: 'schema shared by different keys', fields: { schemas: ['shared'] } }]);
});

test('does not warn when every schema has feeds of one key', () => {
  const { logger, lines } = recordingLogger();
  warnAboutSharedSchemas([feed('a.key', 'one'), feed('a.key', 'one'), feed('b.key', 'other')], logger);
  expect(lines).toEqual([]);
});
