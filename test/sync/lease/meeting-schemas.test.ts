import { expect, it } from 'vitest';
import { createMeetingSchemas } from '../../../src/sync/lease/meeting-schemas.js';

const VALID_MS = 10_000;

function withSchemas(...schemas: readonly string[]) {
  const meeting = createMeetingSchemas(VALID_MS);
  for (const schema of schemas) meeting.add(schema);
  const all = () => ['a', 'b', 'c', 'd', 'e'].filter((schema) => meeting.has(schema));
  return { meeting, all };
}

it('a process is announced in the first three schemas by name, whatever their order', () => {
  expect(withSchemas('d', 'b', 'e', 'a').all()).toEqual(['a', 'b', 'd']);
  expect(withSchemas('e').all()).toEqual(['e']);
});

it('a process is announced in another schema when one of them is added or deleted', () => {
  const { meeting, all } = withSchemas('b', 'c', 'd', 'e');
  expect(all()).toEqual(['b', 'c', 'd']);
  meeting.delete('c');
  expect(all()).toEqual(['b', 'd', 'e']);
  meeting.add('a');
  expect(all()).toEqual(['a', 'b', 'd']);
});

it('the processes are those that were found lately in any schema', () => {
  const { meeting } = withSchemas('a', 'b');
  expect(meeting.found('a', ['own', 'other'], 0)).toEqual(['other', 'own']);
  expect(meeting.found('b', ['own', 'third'], 1)).toEqual(['other', 'own', 'third']);
  expect(meeting.found('b', ['own', 'third'], VALID_MS - 1)).toEqual(['other', 'own', 'third']);
  expect(meeting.found('b', ['own', 'third'], VALID_MS)).toEqual(['own', 'third']);
});

it('a process no longer counts as found when its schema is deleted', () => {
  const { meeting } = withSchemas('a', 'b');
  meeting.found('a', ['own', 'other'], 0);
  meeting.delete('a');
  expect(meeting.found('b', ['own'], 1)).toEqual(['own']);
});
