import { expect, it } from 'vitest';
import { createAnnouncementSchemas } from '../../../src/sync/lease/announcement-schemas.js';

const VALID_MS = 10_000;

function withSchemas(...schemas: readonly string[]) {
  const announcements = createAnnouncementSchemas(VALID_MS);
  for (const schema of schemas) announcements.add(schema);
  const all = () => ['a', 'b', 'c', 'd', 'e'].filter((schema) => announcements.has(schema));
  return { announcements, all };
}

it('a process is announced in the first three schemas by name, whatever their order', () => {
  expect(withSchemas('d', 'b', 'e', 'a').all()).toEqual(['a', 'b', 'd']);
  expect(withSchemas('e').all()).toEqual(['e']);
});

it('a process is announced in another schema when one of them is added or deleted', () => {
  const { announcements, all } = withSchemas('b', 'c', 'd', 'e');
  expect(all()).toEqual(['b', 'c', 'd']);
  announcements.delete('c');
  expect(all()).toEqual(['b', 'd', 'e']);
  announcements.add('a');
  expect(all()).toEqual(['a', 'b', 'd']);
});

it('returns the processes with a current announcement in any schema', () => {
  const { announcements } = withSchemas('a', 'b');
  expect(announcements.record('a', ['own', 'other'], 0)).toEqual(['other', 'own']);
  expect(announcements.record('b', ['own', 'third'], 1)).toEqual(['other', 'own', 'third']);
  expect(announcements.record('b', ['own', 'third'], VALID_MS - 1)).toEqual(['other', 'own', 'third']);
  expect(announcements.record('b', ['own', 'third'], VALID_MS)).toEqual(['own', 'third']);
});

it('a process no longer counts as found when its schema is deleted', () => {
  const { announcements } = withSchemas('a', 'b');
  announcements.record('a', ['own', 'other'], 0);
  announcements.delete('a');
  expect(announcements.record('b', ['own'], 1)).toEqual(['own']);
});
