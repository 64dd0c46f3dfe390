import fs from 'node:fs';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { describeError } from '../../src/observability/log/describe-error.js';
import { createLogger, type LoggerOptions } from '../../src/observability/log/logger.js';
import { captureLeaks } from '../support/canaries/capture-leaks.js';

const CANARY = 'canary-77aa';

function logged(level: LoggerOptions['level'] = 'info', pretty: Pick<LoggerOptions, 'format' | 'colours'> = {}) {
  const lines: string[] = [];
  const logger = createLogger({
    level,
    feed: 'invoices',
    version: '1.2.3',
    ...pretty,
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
  test('writes JSON lines with level, time, name, feed and version', () => {
    const { logger, lines, last } = logged();
    logger.info('started leading the feed', { epoch: 4 });
    expect(lines).toHaveLength(1);
    expect(last()).toEqual({
      level: 'info',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      name: 'scanfeed',
      feed: 'invoices',
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
    const logger = createLogger({ level: 'info', feed: 'invoices', version: '1.2.3' });
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

  test('logs the stack of an error only at level debug', () => {
    const [info, debug] = [logged('info'), logged('debug')];
    for (const { logger } of [info, debug]) logger.error('failed', { error: new Error('x') });
    expect(info.last().error).not.toHaveProperty('stack');
    expect(debug.last().error).toHaveProperty('stack', expect.stringContaining('    at '));
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

describe('the log for a terminal', () => {
  /** Without its time. */
  const shown = (lines: readonly string[]) => lines.map((line) => line.slice('2026-01-01 00:00:00.000Z '.length));

  test('writes time, level, message and fields on one line', () => {
    const { logger, lines } = logged('info', { format: 'pretty' });
    logger.info('started leading the feed', {
      epoch: 4,
      since: null,
      where: 'a b',
      reading: { feed: { entries: 7 } },
      list: [1],
    });
    expect(lines[0]).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z INFO {2}started leading the feed /);
    expect(shown(lines)).toEqual([
      'INFO  started leading the feed feed=invoices epoch=4 since=null where="a b" reading.feed.entries=7 list=[1]\n',
    ]);
  });

  test('writes an error and its cause on the same line, and its stack only at level debug', () => {
    const error = new Error('outer', { cause: new Error('inner one') });
    const [info, debug] = [logged('info', { format: 'pretty' }), logged('debug', { format: 'pretty' })];
    for (const { logger } of [info, debug]) logger.warn('failed', { error });
    expect(shown(info.lines)).toEqual(['WARN  failed feed=invoices error=outer cause="inner one"\n']);
    expect(debug.lines[0]).toMatch(/cause="inner one"\n {4}at /);
  });

  test('redacts the same fields as the JSON log', () => {
    const { logger, lines } = logged('info', { format: 'pretty' });
    logger.info('x', { apiKey: CANARY, headers: { authorization: CANARY }, a: { b: { password: CANARY } } });
    logger.error('failed', { error: new Error('the page was refused', { cause: postgresError() }) });
    expect(lines.join('')).not.toContain(CANARY);
    expect(lines.join('')).toContain('apiKey="[redacted]"');
  });

  test('escapes line breaks and control characters', () => {
    const { logger, lines } = logged('info', { format: 'pretty' });
    const evil = 'a\n2026-01-01 ERROR forged\r\x1b[2J\x9b2J\u2028\u202e\u{e0041}';
    logger.info(evil, { value: evil, [evil]: 1, list: [evil], error: new Error(evil) });
    expect(lines).toHaveLength(1);
    expect(lines[0]?.trimEnd()).toMatch(/^[\x20-\x7e]+$/);
    expect(lines[0]).toContain('\\u001b[2J');
  });

  test('uses colours only when they are enabled', () => {
    const [plain, coloured] = [
      logged('info', { format: 'pretty' }),
      logged('info', { format: 'pretty', colours: true }),
    ];
    for (const { logger } of [plain, coloured]) logger.error('failed', { kind: 'x' });
    expect(plain.lines.join('')).not.toContain('\x1b');
    expect(coloured.lines[0]).toContain('\x1b[31mERROR\x1b[0m failed');
  });
});
