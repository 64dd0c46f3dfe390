import fs from 'node:fs';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { describeError } from '../../src/observability/log/describe-error.js';
import { createLogger, type LoggerOptions } from '../../src/observability/log/logger.js';
import { captureLeaks } from '../support/canaries/capture-leaks.js';

const CANARY = 'canary-77aa';

function logged(level: LoggerOptions['level'] = 'info') {
  const lines: string[] = [];
  const logger = createLogger({
    level,
    version: '1.2.3',
    destination: {
      write: (line) => {
        captureLeaks('the log', line);
        lines.push(line);
      },
    },
  });
  return { logger, lines, last: () => JSON.parse(lines.at(-1) ?? '{}') as Record<string, unknown> };
}

/** As pg throws it. */
function postgresError() {
  return Object.assign(new Error(`invalid input syntax: "${CANARY}"`), {
    name: 'error',
    severity: 'ERROR',
    code: '22P02',
    detail: `Token "${CANARY}" is invalid.`,
    hint: CANARY,
    where: `JSON data, line 1: ${CANARY}`,
    constraint: 'runs_pkey',
    table: 'runs',
    query: `insert ${CANARY}`,
    parameters: [CANARY],
  });
}

describe('the log', () => {
  test('writes JSON lines with level, time, name and version', () => {
    const { logger, lines, last } = logged();
    logger.info('started leading the feed', { epoch: 4 });
    expect(lines).toHaveLength(1);
    expect(last()).toEqual({
      level: 'info',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      name: 'scanfeed',
      version: '1.2.3',
      epoch: 4,
      message: 'started leading the feed',
    });
  });

  test('omits lines below its level', () => {
    const { logger, lines } = logged('warn');
    logger.info('unheard');
    logger.warn('heard');
    expect(lines).toHaveLength(1);
  });

  test('switches to debug and back, and shows stacks only there', () => {
    const { logger, lines, last } = logged('warn');
    logger.toggleDebug();
    expect(last()).toMatchObject({ level: 'debug', message: 'log level changed', logLevel: 'debug' });
    logger.debug('committed', { error: new Error('with a stack') });
    expect(last()).toMatchObject({ message: 'committed', error: { stack: expect.stringContaining('at ') } });
    logger.toggleDebug();
    expect(last()).toMatchObject({ level: 'warn', message: 'log level changed', logLevel: 'warn' });
    logger.info('not logged');
    logger.warn('failed', { error: new Error('without a stack') });
    expect(last()).not.toHaveProperty('error.stack');
    expect(lines).toHaveLength(4);
  });

  test.each([
    ['debug', 'trace'],
    ['trace', 'trace'],
    ['silent', 'debug'],
  ] as const)('switches from the configured level %s to %s', (configured, more) => {
    const { logger, last } = logged(configured);
    logger.toggleDebug();
    expect(last()).toMatchObject({ message: 'log level changed', logLevel: more });
  });

  test('buffers 1 MiB when the disk is full, counts the dropped lines, and resumes once there is space', async () => {
    const written: string[] = [];
    let isFull = true;
    const { writeSync } = fs;
    const spy = vi.spyOn(fs, 'writeSync').mockImplementation(((fd: number, text: string, ...rest: []) => {
      if (fd !== 1) return writeSync(fd, text, ...rest);
      if (isFull) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
      written.push(...text.trimEnd().split('\n'));
      return Buffer.byteLength(text);
    }) as typeof writeSync);
    onTestFinished(() => spy.mockRestore());
    const logger = createLogger({ level: 'info', version: '1.2.3' });
    const filling = 'x'.repeat(100 * 1024);
    for (let line = 1; line <= 15; line += 1) logger.info(`line ${line}`, { filling });
    isFull = false;
    logger.info('room is found with this one', { filling });
    await new Promise(setImmediate);
    logger.info('as ever');
    const messages = written.map((line) => JSON.parse(line) as { message: string; lines?: number });
    const lines = messages.filter(({ message }) => message.startsWith('line ')).length;
    expect(lines).toBe(10);
    expect(messages.slice(lines)).toMatchObject([
      { level: 'warn', message: 'dropped log lines: output was blocked', lines: 6 },
      { level: 'info', message: 'as ever' },
    ]);
  });

  test('redacts fields named like secrets or document content, down to the third level', () => {
    const { logger, lines } = logged();
    logger.info('x', { apiKey: CANARY, headers: { authorization: CANARY }, a: { b: { password: CANARY } } });
    logger.info('x', { data: CANARY, entry: { markdown: CANARY } });
    expect(lines.join('')).not.toContain(CANARY);
    expect(lines.join('')).toContain('[redacted]');
  });

  test('logs only type, message, kind and codes of an error and its causes', () => {
    const { logger, last } = logged();
    const cause = Object.assign(new TypeError('inner'), { code: 'ECONNREFUSED', secret: CANARY });
    const error = Object.assign(new Error('outer', { cause }), { kind: 'connection', sqlstate: '08006', body: CANARY });
    logger.error('failed', { error });
    expect(last().error).toEqual({
      type: 'Error',
      message: 'outer',
      kind: 'connection',
      sqlstate: '08006',
      cause: { type: 'TypeError', message: 'inner', code: 'ECONNREFUSED' },
    });
  });

  test.each(['info', 'trace'] as const)('omits document content from errors of PostgreSQL at level %s', (level) => {
    const { logger, lines, last } = logged(level);
    logger.error('failed', { error: new Error('the page was refused', { cause: postgresError() }) });
    expect(lines.join('')).not.toContain(CANARY);
    expect(last().error).toMatchObject({ cause: { sqlstate: '22P02', constraint: 'runs_pkey' } });
  });
});

describe('an error in the log', () => {
  test('is logged once when it is its own cause', () => {
    const error = new Error('round');
    error.cause = error;
    expect(JSON.stringify(describeError(error)).match(/round/g)).toHaveLength(6);
  });

  test('is logged with its type only when the thrown value is not an error', () => {
    expect(describeError({ key: CANARY })).toEqual({
      type: 'object',
      message: 'the thrown value is not an error',
    });
    expect(JSON.stringify(describeError(CANARY))).not.toContain(CANARY);
  });
});
