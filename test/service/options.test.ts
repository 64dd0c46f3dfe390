import { expect, it } from 'vitest';
import { createDispatcher, followFeed, InvalidArgumentError, RecognitionClient } from '../../src/index.js';
import { captureErrorLeaks } from '../support/canaries/capture-leaks.js';
import { KEY, rejection } from './harness.js';

const PEM = '-----BEGIN CERTIFICATE-----\ncanary-certificate\n-----END CERTIFICATE-----';

/** Returns the error that a call throws at once. */
function thrownBy(call: () => unknown): unknown {
  try {
    call();
  } catch (error) {
    captureErrorLeaks('an error of the client', error);
    return error;
  }
  throw new Error('expected an error');
}

it.each([
  ['apiKey', ''],
  ['apiKey', undefined],
  ['apiKey', `${KEY}\n`],
  ['apiKey', Promise.resolve(KEY)],
  ['userAgent', ''],
  ['userAgent', 'scanfeed\r\nx-evil: 1'],
  ['dispatcher', null],
  ['dispatcher', {}],
  ['onRequest', 'log'],
  ['requestTimeoutMs', 0],
  ['maxResponseBytes', 0.5],
])('names the option when a client is created with an unusable %s: %j', (name, value) => {
  const error = thrownBy(() => new RecognitionClient({ baseUrl: 'https://x.example/v1', apiKey: KEY, [name]: value }));
  expect(error).toBeInstanceOf(InvalidArgumentError);
  expect(error).toMatchObject({ kind: 'invalid_argument', message: expect.stringMatching(`^${name} must be `) });
  expect(String(error)).not.toContain('canary');
});

it.each([
  ['httpsProxy', { proxy: { httpsProxy: 'user:canary-password@proxy.example:3128' } }],
  ['httpProxy', { proxy: { httpProxy: 'proxy.example:3128' } }],
  ['noProxy', { proxy: { noProxy: '10.0.0.0/99' } }],
  ['ca', { ca: 'certificates/ca.pem' }],
  ['ca', { ca: [PEM] }],
  ['connections', { connections: 0 }],
  ['connectTimeoutMs', { connectTimeoutMs: Number.NaN }],
  ['lookup', { lookup: 'dns' as never }],
  ['readAgain', { readAgain: {} as never }],
])('names the option when a dispatcher is created with an unusable %s: %j', (name, options) => {
  const error = thrownBy(() => createDispatcher(options));
  expect(error).toBeInstanceOf(InvalidArgumentError);
  expect(error).toMatchObject({ message: expect.stringMatching(`^${name} must be `) });
  expect(String(error)).not.toContain('canary');
});

it.each([
  ['waitOut', { waitOut: 'http_401' as never }],
  ['onFailure', { onFailure: null as never }],
  ['limit', { limit: 201 }],
  ['status', { status: [] }],
  ['environment', { environment: 'live' as never }],
  ['documentType', { documentType: '' }],
  ['cursor', { cursor: '' }],
  ['cursor', { cursor: 5 as never }],
  ['since', { since: 'yesterday' }],
  ['pollIntervalMs', { pollIntervalMs: -1 }],
])(
  'names the option before the first request when a feed is followed with an unusable %s, although every error is waited out',
  async (name, options) => {
    const untouched = { readPage: () => Promise.reject(new Error('requested')) };
    const error = await rejection(followFeed(untouched, { waitOut: () => true, ...options }).next());
    expect(error).toMatchObject({ kind: 'invalid_argument', message: expect.stringMatching(`^${name} must `) });
  },
);
