import { describe, expect, it } from 'vitest';
import { form, ids, setUp } from './client.js';

const apiKeys = [
  { key: 'one', organization: 'a' },
  { key: 'also-one', organization: 'a' },
  { key: 'two', organization: 'b' },
  { key: 'stray', organization: null },
];

describe('authentication (interface 5)', () => {
  it.each([
    ['no header', {}],
    ['an unknown key', { authorization: 'Bearer falsch' }],
    ['another scheme', { authorization: 'Basic one' }],
    ['an empty key', { authorization: 'Bearer ' }],
    ['a key followed by other text', { authorization: 'Bearer one two' }],
  ])(
    'answers every operation with 401 in German when the request has %s',
    async (_, headers: Record<string, string>) => {
      const { get, submit } = await setUp({ apiKeys, history: 1 });
      const without = { authorization: '', ...headers };
      for (const reply of [
        await get('/scans', headers),
        await get('/scans/x', headers),
        await submit(form(), 'environment=prod', without),
      ]) {
        expect(reply.status).toBe(401);
        expect(reply.json).toEqual({ error: 'API-Schlüssel fehlt oder ist ungültig.' });
      }
    },
  );

  it('answers 403 when the key belongs to no organization', async () => {
    const { get, submit } = await setUp({ apiKeys });
    const headers = { authorization: 'Bearer stray' };
    for (const reply of [
      await get('/scans', headers),
      await get('/scans/x', headers),
      await submit(form(), '', headers),
    ]) {
      expect(reply.status).toBe(403);
      expect(reply.json.error).toMatch(/Organisation/);
    }
  });

  it('answers 401 when both key and parameters are invalid', async () => {
    const { get } = await setUp({ apiKeys });
    expect((await get('/scans?limit=0', {})).status).toBe(401);
  });

  it('shows no runs and accepts no cursors when they belong to another organization', async () => {
    const { get, page, emulator } = await setUp({ apiKeys, history: 5 });
    const mine = await page();
    const same = (await get('/scans', { authorization: 'bearer also-one' })).json;
    const other = (await get('/scans', { authorization: 'Bearer two' })).json as unknown as typeof mine;
    expect(same).toEqual(mine);
    expect(ids(other.items).some((id) => ids(mine.items).includes(id))).toBe(false);
    expect((await get(`/scans?cursor=${mine.nextCursor}`, { authorization: 'Bearer two' })).status).toBe(400);
    emulator.appendCount(1, {}, 'b');
    expect((await page(`cursor=${mine.nextCursor}`)).items).toEqual([]);
  });
});
