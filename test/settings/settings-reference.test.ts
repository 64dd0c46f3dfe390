import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { renderVariables } from '../support/settings-reference.js';

const REFERENCE = new URL('../../docs/settings.md', import.meta.url);

test('docs/settings.md lists all variables as the code defines them', () => {
  const page = readFileSync(REFERENCE, 'utf8');
  const listed = page.slice(page.indexOf('## The service\n'), page.indexOf('\n## The feeds file\n'));
  expect(listed).toBe(renderVariables());
});
