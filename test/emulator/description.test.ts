import { Validator } from '@seriousme/openapi-schema-validator';
import { describe, expect, it } from 'vitest';
import { INTERFACE_FIELDS } from '../../src/core/run-fields.js';
import { FILTERS } from '../../src/emulator/model/filters.js';
import { document, serviceDescription, watchEmulator } from '../support/openapi/watch-emulator.js';
import { form, setUp } from './client.js';

describe('the OpenAPI description of the service', () => {
  it('is served without a key on the control routes, and is valid OpenAPI', async () => {
    const { control } = await setUp();
    const { json, headers } = await control('GET', '/openapi.json');
    expect(headers.get('content-type')).toMatch(/^application\/json/);
    expect(json).toEqual(document);
    expect(await new Validator().validate(json)).toMatchObject({ valid: true });
  });

  it('lists exactly the operations of the interface', () => {
    const described = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, { responses }]) => `${method} ${path}: ${Object.keys(responses).join(' ')}`),
    );
    expect(described.sort()).toEqual([
      'get /scans/{scanId}: 200 404 default',
      'get /scans: 200 400 401 403 404 default',
      'post /scans: 200 202 400 401 403 404 409 500 default',
    ]);
  });

  it('has the filters of the emulator, with their values and defaults', () => {
    const parameters = document.paths['/scans']?.get?.parameters ?? [];
    const described = parameters
      .filter(({ name }) => !['cursor', 'since', 'limit', 'markdown'].includes(name))
      .map(({ name, schema }) => {
        const { enum: allowed = null } = schema.type === 'array' ? resolved(schema.items as Json) : schema;
        return [name, { allowed, isList: schema.type === 'array', default: [schema.default ?? null].flat().join() }];
      });
    const emulated = Object.entries(FILTERS).map(([name, filter]) => [
      name,
      { allowed: filter.allowed, isList: filter.isList ?? false, default: filter.default ?? '' },
    ]);
    expect(described).toEqual(emulated);
  });

  it('has the fields of the client, which the emulator sends', async () => {
    const { emulator, page, get } = await setUp();
    emulator.appendRun({ scanId: 'completed', markdown: '# Invoice' });
    emulator.appendRun({ scanId: 'failed', status: 'failed' });
    const { items } = await page('status=completed,failed&markdown=true');
    const { json: run } = await get('/scans/completed?markdown=true');
    const sent = new Set([...items, run].flatMap((answer) => Object.keys(answer)));
    expect(sent).toEqual(new Set(INTERFACE_FIELDS));
    const described = Object.keys(document.components.schemas.Run?.properties ?? {});
    expect(new Set([...described, 'rawOcrResult'])).toEqual(sent);
  });

  it('has examples that match it', () => {
    const examples = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.entries(item).flatMap(([method, { responses }]) =>
        Object.entries(responses).flatMap(([status, response]) =>
          examplesOf(response).map((value) => ({ path, method, status, value })),
        ),
      ),
    );
    expect(examples.length).toBeGreaterThan(3);
    for (const { path, method, status, value } of examples) {
      const headers = { 'content-type': 'application/json', location: 'https://recognition.example/v1/scans/a' };
      const answer = { status: Number(status), headers, body: JSON.stringify(value) };
      const request = { method, path, query: {}, headers: {} };
      expect(serviceDescription.ofAnswer(request, answer)).toEqual({ differences: [], unlisted: false });
    }
  });
});

type Json = Readonly<Record<string, unknown>>;

function resolved({ $ref }: Json): Json {
  return document.components.schemas[String($ref).split('/').at(-1) ?? ''] ?? {};
}

function examplesOf(response: unknown): unknown[] {
  const { content } = response as { content?: Record<string, { examples?: Record<string, { value: unknown }> }> };
  return Object.values(content?.['application/json']?.examples ?? {}).map(({ value }) => value);
}

describe('the check against the OpenAPI description', () => {
  const run = {
    ...{ scanId: 'a', revision: 1, status: 'completed', environment: 'prod', documentType: {}, fileName: 'a.pdf' },
    ...{ data: {}, deliveredAt: '2026-10-01T12:00:00Z' },
  };
  const ofPage = (page: object, type = 'application/json; charset=utf-8') =>
    serviceDescription.ofAnswer(
      { method: 'GET', path: '/scans', query: {}, headers: {} },
      { status: 200, headers: { 'content-type': type }, body: JSON.stringify(page) },
    ).differences;

  it('accepts a page when it matches', () => {
    expect(
      ofPage({ items: [run, { ...run, data: undefined, status: 'failed', error: 'Aua.' }], nextCursor: 'c' }),
    ).toEqual([]);
  });

  it('accepts explicit nulls where the interface does (2.1)', () => {
    const nullable = {
      ...{ partnerName: null, ocrConfidence: null, submittedAt: null, completedAt: null, deliveredAt: null },
      ...{ data: null, failureReason: null, error: null, markdown: null, documentType: { slug: null, name: null } },
    };
    const items = ['completed', 'failed'].map((status) => ({ ...run, ...nullable, status }));
    expect(ofPage({ items, nextCursor: 'c' })).toEqual([]);
  });

  it.each([
    ['no nextCursor', { items: [] }, /nextCursor/],
    ['a processing run in the feed', { items: [{ ...run, status: 'processing' }], nextCursor: 'c' }, /status/],
    ['a run without revision', { items: [{ ...run, revision: undefined }], nextCursor: 'c' }, /revision/],
    ['revision 0', { items: [{ ...run, revision: 0 }], nextCursor: 'c' }, /revision/],
    ['a failed run with data', { items: [{ ...run, status: 'failed' }], nextCursor: 'c' }, /status/],
    ['a completed run with an error', { items: [{ ...run, error: 'Aua.' }], nextCursor: 'c' }, /status/],
    ['an invalid time', { items: [{ ...run, deliveredAt: 'gestern' }], nextCursor: 'c' }, /deliveredAt/],
    ['an unknown member', { items: [{ ...run, pages: 3 }], nextCursor: 'c' }, /pages/],
  ])('reports a difference when a page has %s', (_, page, expected) => {
    expect(ofPage(page).join('\n')).toMatch(expected);
  });

  it('reports a difference when an answer has another content type', () => {
    expect(ofPage({ items: [], nextCursor: 'c' }, 'text/html')).toEqual([
      'the content type text/html is not described',
    ]);
  });

  it.each([
    ['limit 0', { limit: '0' }],
    ['limit 201', { limit: '201' }],
    ['an unknown status', { status: 'completed,odd' }],
    ['an unknown environment', { environment: 'staging' }],
    ['a parameter given twice', { cursor: ['a', 'b'] }],
  ])('reports a difference when a request has %s', (_, query) => {
    const headers = { authorization: 'Bearer key' };
    expect(serviceDescription.ofRequest({ method: 'GET', path: '/scans', query, headers }).differences).toHaveLength(1);
  });

  it('reports invalid requests, and accepts scripted and faulty answers, when it watches an emulator', async () => {
    const { emulator, get, submit } = await setUp();
    const { differences } = watchEmulator(emulator, { strict: true });
    emulator.appendRaw(['{"scanId":7}', 'no JSON']);
    emulator.addFault({ kind: 'status', status: 418, next: 1 });
    emulator.addFault({ kind: 'missing-cursor', next: 1 });
    for (let i = 0; i < 3; i++) await get('/scans?limit=200');
    await submit(form());
    expect(differences).toEqual([]);
    await get('/scans?limit=300');
    await get('/scans?page=2');
    await submit('{}', '', { 'content-type': 'application/json' });
    expect(differences).toEqual([
      expect.stringMatching(/^request 5 \(feed\): query limit must be <= 200/),
      'request 6 (feed): query page is not described',
      'request 7 (submit): query environment is missing',
      'request 7 (submit): a body of the type "application/json" is not described',
    ]);
  });
});
