import { describe, expect, test } from 'vitest';
import { describeError } from '../../src/observability/describe-error.js';
import { createLogger, type LoggerOptions } from '../../src/observability/logger.js';
import { overhear } from '../support/canaries/overhear.js';

const CANARY = 'canary-77aa';

function logged(level: LoggerOptions['level'] = 'info') {
  const lines: string[] = [];
  const logger = createLogger({
    level,
    feed: 'invoices',
    version: '1.2.3',
    destination: {
      write: (line) => {
        overhear('the log', line);
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
  test('is JSON lines with level, time, name, feed and version', () => {
    const { logger, lines, last } = logged();
    logger.info('took the feed', { epoch: 4 });
    expect(lines).toHaveLength(1);
    expect(last()).toEqual({
      level: 'info',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      name: 'scanfeed',
      feed: 'invoices',
      version: '1.2.3',
      epoch: 4,
      message: 'took the feed',
    });
  });

  test('leaves out what is below its level', () => {
    const { logger, lines } = logged('warn');
    logger.info('unheard');
    logger.warn('heard');
    expect(lines).toHaveLength(1);
  });

  test('hides values under names of secrets and of document content, down to the third level', () => {
    const { logger, lines } = logged();
    logger.info('x', { apiKey: CANARY, headers: { authorization: CANARY }, a: { b: { password: CANARY } } });
    logger.info('x', { data: CANARY, entry: { markdown: CANARY } });
    expect(lines.join('')).not.toContain(CANARY);
    expect(lines.join('')).toContain('[redacted]');
  });

  test('shows type, message, kind and codes of an error and its causes, nothing else', () => {
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

  test.each(['info', 'trace'] as const)('keeps what PostgreSQL quotes of documents to itself, at level %s', (level) => {
    const { logger, lines, last } = logged(level);
    logger.error('failed', { error: new Error('the page was refused', { cause: postgresError() }) });
    expect(lines.join('')).not.toContain(CANARY);
    expect(last().error).toMatchObject({ cause: { sqlstate: '22P02', constraint: 'runs_pkey' } });
  });

  test('shows where an error came from at level debug only', () => {
    const [info, debug] = [logged('info'), logged('debug')];
    for (const { logger } of [info, debug]) logger.error('failed', { error: new Error('x') });
    expect(info.last().error).not.toHaveProperty('stack');
    expect(debug.last().error).toHaveProperty('stack', expect.stringContaining('    at '));
  });
});

describe('an error in the log', () => {
  test('that causes itself does not loop', () => {
    const error = new Error('round');
    error.cause = error;
    expect(JSON.stringify(describeError(error)).match(/round/g)).toHaveLength(6);
  });

  test('that is no error shows only what it was', () => {
    expect(describeError({ key: CANARY })).toEqual({
      type: 'object',
      message: 'something was thrown that is no error',
    });
    expect(JSON.stringify(describeError(CANARY))).not.toContain(CANARY);
  });
});
