import { afterEach, describe, expect, test } from 'vitest';
import { createLogger } from '../../src/observability/log/logger.js';
import { DatabaseError } from '../../src/storage/connection/errors.js';
import { canary, findCanary, findExposed } from '../support/canaries/canary.js';
import { overhear, overhearError, takeExposures } from '../support/canaries/overhear.js';
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

  test('is found wherever it is said', () => {
    overhear('the log', `a line before\n${shown(canary('key'))}`);
    expect(takeExposures()).toEqual([expect.stringMatching(/^the log: …/)]);
  });
});

describe('the watch over all outputs', () => {
  afterEach(() => expect(takeExposures()).toEqual([]));

  test('hears of an entry that the builders made, through the real log', () => {
    const destination = { write: (line: string) => overhear('the log', line) };
    const logger = createLogger({ level: 'trace', feed: 'f', version: '1', destination });
    logger.info('stored', { count: 1 });
    expect(takeExposures()).toEqual([]);
    logger.info('stored', { entry1: entryJson() });
    expect(takeExposures()).not.toEqual([]);
  });

  test('hears what an error has in it without showing it', () => {
    overhearError('an error', new DatabaseError(null, 'internal', 'retry', 'no secret'));
    expect(takeExposures()).toEqual([]);
    overhearError('an error', Object.assign(new Error('no secret'), { cause: { detail: canary('document') } }));
    expect(takeExposures()).not.toEqual([]);
  });

  test('is silent about everything else', () => {
    expect(findCanary('{"level":"info","message":"committed","entries":200}')).toBeNull();
  });
});
