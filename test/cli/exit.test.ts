import { CommanderError } from 'commander';
import { expect, test } from 'vitest';
import { CommandFailure, explain } from '../../src/cli/context/exit.js';
import { bodyTooLargeError, notJsonError, wrongShapeError } from '../../src/service/errors/body-errors.js';
import { noResponseError } from '../../src/service/errors/connection-errors.js';
import { httpStatusError } from '../../src/service/errors/status-errors.js';
import { databaseError, SchemaMismatch } from '../../src/storage/connection/errors.js';

const body = Buffer.alloc(300);
const answered = (status: number) => httpStatusError({ operation: 'feed', status });
const sqlstate = (code: string) => databaseError(Object.assign(new Error('secret'), { code, severity: 'ERROR' }));

test.each([
  ['a maintenance page in HTML', notJsonError(200, 'another content type', body)],
  ['a service without a connection', noResponseError('https://service.example', 'ECONNREFUSED')],
  ['an internal error of the service', answered(503)],
  ['too many requests', answered(429)],
  ['a lost database', databaseError(new Error('terminated'))],
  ['a database that is starting', sqlstate('57P03')],
])('%s is worth another try: 75', (_, error) => {
  expect(explain(error)).toEqual({ exitCode: 75, message: error.message });
});

test.each([
  ['a refused key', answered(401)],
  ['a redirect', answered(302)],
  ['JSON of another shape', wrongShapeError(200, 'the page', ['items'])],
  ['an answer that is too large', bodyTooLargeError(1_000)],
  ['a refused login', sqlstate('28P01')],
  ['a schema that does not fit', new SchemaMismatch('run `scanfeed migrate`')],
])('%s wants somebody to change something: 1', (_, error) => {
  expect(explain(error)).toEqual({ exitCode: 1, message: error.message });
});

test('explain returns the exit code of the failure when it has one', () => {
  expect(explain(new CommandFailure('say which', 64))).toEqual({ exitCode: 64, message: 'say which' });
});

test('explain returns no message when Commander has already printed it', () => {
  expect(explain(new CommanderError(1, 'commander.unknownOption', 'unknown'))).toEqual({ exitCode: 64, message: null });
  expect(explain(new CommanderError(0, 'commander.help', '(help)'))).toEqual({ exitCode: 0, message: null });
});

test('explain reports any other error as a bug with its stack', () => {
  expect(explain(new TypeError('no function'))).toEqual({
    exitCode: 1,
    message: expect.stringMatching(/^this is a bug in scanfeed: TypeError: no function\n +at /),
  });
  expect(explain('thrown').message).toBe('this is a bug in scanfeed: thrown');
});

test('explain returns the remedy when an answer is too large', () => {
  expect(bodyTooLargeError(1_000).message).toBe(
    'the response is larger than the 1000 bytes allowed; if it is a page of the feed, lower the page limit',
  );
});
