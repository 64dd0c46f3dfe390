import { afterEach, describe, expect, test } from 'vitest';
import { createLogger } from '../../src/observability/log/logger.js';
import { DatabaseError } from '../../src/storage/connection/errors.js';
import { canary, findCanary, findExposed } from '../support/canaries/canary.js';
import { captureErrorLeaks, captureLeaks, takeLeaks } from '../support/canaries/capture-leaks.js';
import { entryJson } from '../support/entries.js';

const FORMS: readonly (readonly [string, (secret: string) => string])[] = [
  ['as it is', (secret) => `{"message":"key ${secret}"}`],
  ['in a URL', (secret) => `postgres://user:${encodeURIComponent(secret)}@host`],
  ['in Base64', (secret) => Buffer.from(secret).toString('base64')],
  ['in the middle of Base64', (secret) => Buffer.from(`Basic x:${secret} and more`).toString('base64')],
  ['further on in Base64', (secret) => Buffer.from(`user:${secret} and more`).toString('base64')],
  ['in hex', (secret) => `\\x${Buffer.from(secret).toString('hex')}`],
];

describe.each(FORMS)('a secret %s', (_, shown) => {
  test('is found by its name', () => {
    const [found, other] = [canary('found'), canary('other')];
    expect(findExposed(shown(found), { found, other })).toEqual(['found']);
  });

  test('is reported when any output contains it', () => {
    captureLeaks('the log', `a line before\n${shown(canary('key'))}`);
    expect(takeLeaks()).toEqual([expect.stringMatching(/^the log: …/)]);
  });
});

describe('the check of all outputs', () => {
  afterEach(() => expect(takeLeaks()).toEqual([]));

  test('reports an entry of the builders when the real log contains it', () => {
    const destination = { write: (line: string) => captureLeaks('the log', line) };
    const logger = createLogger({ level: 'trace', version: '1', destination });
    logger.info('stored', { count: 1 });
    expect(takeLeaks()).toEqual([]);
    logger.info('stored', { entry1: entryJson() });
    expect(takeLeaks()).not.toEqual([]);
  });

  test('reports the hidden fields of an error when they contain a secret', () => {
    captureErrorLeaks('an error', new DatabaseError(null, 'internal', 'retry', 'no secret'));
    expect(takeLeaks()).toEqual([]);
    captureErrorLeaks('an error', Object.assign(new Error('no secret'), { cause: { detail: canary('document') } }));
    expect(takeLeaks()).not.toEqual([]);
  });

  test('reports nothing when the output is harmless', () => {
    expect(findCanary('{"level":"info","message":"committed","entries":200}')).toBeNull();
  });
});
