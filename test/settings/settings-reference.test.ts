import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { renderSettingsReference } from '../support/settings-reference.js';

const REFERENCE = new URL('../../docs/settings.md', import.meta.url);

test('docs/settings.md matches the table of variables', () => {
  expect(readFileSync(REFERENCE, 'utf8')).toBe(renderSettingsReference());
});
