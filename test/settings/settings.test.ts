import { rootCertificates } from 'node:tls';
import { inspect } from 'node:util';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FILTER_NAMES, UNFILTERED } from '../../src/core/feed-filters.js';
import { readSettings, SettingsError } from '../../src/settings/settings.js';
import { ALL_VARIABLES, VARIABLES } from '../../src/settings/variables.js';
import { testCertificate } from '../support/certificate.js';
import { codePoint } from '../support/code-points.js';
import { NARROW } from '../support/filters.js';
import { files, LEAST, mistakesWith, settingsWith } from '../support/settings.js';

function outcomeOf(read: () => unknown): string {
  try {
    read();
    return 'accepted';
  } catch (error) {
    return (error as Error).name;
  }
}

describe('settings', () => {
  test('have the documented defaults', () => {
    const { service, feed, database, ...others } = settingsWith({});
    expect(service).toMatchObject({
      baseUrl: 'https://service.example/v1',
      requestTimeoutMs: 30_000,
      requestsPerSecond: null,
    });
    expect(feed).toEqual({
      name: 'default',
      filters: { status: ['completed', 'failed'], environment: 'prod', documentType: null },
      markdown: false,
      start: 'beginning',
      pageLimit: 200,
      pollIntervalMs: 5_000,
      resolveConcurrency: 8,
      pendingRetryMs: 30_000,
      memoryBudgetBytes: 67_108_864,
      leaseTtlMs: 10_000,
      keepHistory: true,
    });
    expect(database).toMatchObject({
      schema: 'scanfeed',
      readerRole: null,
      typedViews: true,
      reportingTimeZone: 'UTC',
      retention: { runs: null, run_history: null, quarantine: null },
      autoMigrate: true,
      poolSize: 5,
    });
    expect(database.migrationConnection).toBe(database.connection);
    expect(others).toEqual({
      reconcile: { intervalMs: 3_600_000, windowMs: 7_200_000, fullIntervalMs: 604_800_000 },
      admin: { host: '::', port: 9847 },
      process: {
        shutdownTimeoutMs: 10_000,
        logLevel: 'info',
        traces: null,
        systemd: { notifySocket: null, watchdogMs: null },
      },
      warnings: [],
    });
  });

  test.each(['UTC', 'Europe/Berlin', 'America/Argentina/Buenos_Aires', 'Etc/GMT+1'])(
    'accept the time zone %s',
    (zone) => {
      expect(settingsWith({ SCANFEED_REPORTING_TIME_ZONE: zone }).database.reportingTimeZone).toBe(zone);
    },
  );

  test.each([
    ['off', { runs: null, run_history: null, quarantine: null }],
    ['730', { runs: 730, run_history: 730, quarantine: 730 }],
    ['runs=730, quarantine=30', { runs: 730, run_history: null, quarantine: 30 }],
  ])('accept the retention %s', (text, retention) => {
    expect(settingsWith({ SCANFEED_RETENTION_DAYS: text }).database.retention).toEqual(retention);
  });

  test.each(['0', '-1', '1.5', '40000', 'runs', 'runs=', 'runs=1,runs=2', 'reports=7', 'constructor=7', 'runs=7=8'])(
    'reject the retention %s',
    (text) => {
      expect(mistakesWith({ SCANFEED_RETENTION_DAYS: text }).mistakes).toHaveLength(1);
    },
  );

  test.each(FILTER_NAMES)('accept the widest value and others of the filter %s', (name) => {
    for (const setting of [UNFILTERED[name], ...NARROW[name]]) {
      const { filters } = settingsWith({ [VARIABLES.feed[name].name]: String(setting ?? '') }).feed;
      expect(filters[name]).toEqual(setting);
    }
  });

  test('accept every notation', () => {
    const { feed, reconcile, service, admin } = settingsWith({
      SCANFEED_POLL_INTERVAL: '500ms',
      SCANFEED_LEASE_TTL: '1.5m',
      SCANFEED_MEMORY_BUDGET: '1GiB',
      SCANFEED_MARKDOWN: 'YES',
      SCANFEED_HISTORY: '0',
      SCANFEED_STATUS: ' failed, completed ',
      SCANFEED_START: '2026-01-31T12:00:00+02:00',
      SCANFEED_RECONCILE_INTERVAL: 'off',
      SCANFEED_RECONCILE_FULL_INTERVAL: '30d',
      SCANFEED_REQUESTS_PER_SECOND: '0.5',
      SCANFEED_ADMIN_HOST: '::1',
    });
    expect(feed).toMatchObject({
      pollIntervalMs: 500,
      leaseTtlMs: 90_000,
      memoryBudgetBytes: 2 ** 30,
      markdown: true,
      keepHistory: false,
      filters: { status: ['completed', 'failed'] },
      start: new Date('2026-01-31T10:00:00Z'),
    });
    expect(reconcile).toMatchObject({ intervalMs: null, fullIntervalMs: 30 * 86_400_000 });
    expect(service.requestsPerSecond).toBe(0.5);
    expect(admin.host).toBe('::1');
  });

  test.each([
    ['SCANFEED_POLL_INTERVAL', '5'],
    ['SCANFEED_POLL_INTERVAL', '0s'],
    ['SCANFEED_POLL_INTERVAL', '-5s'],
    ['SCANFEED_POLL_INTERVAL', 'off'],
    ['SCANFEED_LEASE_TTL', '9999d'],
    ['SCANFEED_PENDING_RETRY_INTERVAL', '2h'],
    ['SCANFEED_MEMORY_BUDGET', '64MB'],
    ['SCANFEED_MEMORY_BUDGET', '64'],
    ['SCANFEED_PAGE_LIMIT', '0'],
    ['SCANFEED_PAGE_LIMIT', '201'],
    ['SCANFEED_PAGE_LIMIT', '1e2'],
    ['SCANFEED_MARKDOWN', 'maybe'],
    ['SCANFEED_STATUS', 'completed,processing'],
    ['SCANFEED_STATUS', ','],
    ['SCANFEED_ENVIRONMENT', 'PROD'],
    ['SCANFEED_START', 'yesterday'],
    ['SCANFEED_START', '2026-01-31T12:00:00'],
    ['SCANFEED_START', '2026-02-30T12:00:00Z'],
    ['SCANFEED_REQUESTS_PER_SECOND', '0'],
    ['SCANFEED_FEED', 'a b'],
    ['SCANFEED_FEED', 'x'.repeat(64)],
    ['SCANFEED_DOCUMENT_TYPE', 'a\nb'],
    ['SCANFEED_DATABASE_SCHEMA', 'x'.repeat(54)],
    ['SCANFEED_DATABASE_SCHEMA', 'pg_mine'],
    ['SCANFEED_DATABASE_SCHEMA', 'Scanfeed'],
    ['SCANFEED_DATABASE_SCHEMA', 'a";drop'],
    ['SCANFEED_READER_ROLE', 'public'],
    ['SCANFEED_REPORTING_TIME_ZONE', 'Europe/Nowhere'],
    ['SCANFEED_REPORTING_TIME_ZONE', 'CET'],
    ['SCANFEED_REPORTING_TIME_ZONE', '+01:00'],
    ['SCANFEED_ADMIN_PORT', '65536'],
    ['SCANFEED_LOG_LEVEL', 'loud'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4317'],
    ['NO_PROXY', '10.0.0.0/33'],
    ['no_proxy', '.local,https://service.example'],
    ['SCANFEED_BASE_URL', 'service.example/v1'],
    ['SCANFEED_BASE_URL', 'ftp://service.example/v1'],
    ['SCANFEED_BASE_URL', 'https://service.example/v1?x=1'],
    ['SCANFEED_BASE_URL', 'https://service.example/v1#'],
    ['SCANFEED_BASE_URL', 'http://service.example/v1'],
    ['SCANFEED_BASE_URL', 'http://127.0.0.1.example/v1'],
  ])('reject %s=%j and show what is allowed', (name, value) => {
    const { mistakes, message, exitCode } = mistakesWith({ [name]: value });
    expect(mistakes).toEqual([expect.objectContaining({ variable: name, value })]);
    expect(message).toContain(`${name} is ${JSON.stringify(value)}`);
    expect(message).toContain(`expected: ${mistakes[0]?.allowed}`);
    expect(exitCode).toBe(78);
  });

  test('accept a schema name of up to 53 bytes, so that the name of the reporting schema fits', () => {
    const { database } = settingsWith({ SCANFEED_DATABASE_SCHEMA: 'x'.repeat(53) });
    expect(Buffer.byteLength(`${database.schema}_reporting`)).toBe(63);
  });

  test.each([
    ['https://service.example/api/v1///', 'https://service.example/api/v1'],
    ['https://SERVICE.example:443/v1', 'https://service.example/v1'],
    ['https://service.example', 'https://service.example'],
    ['http://localhost:8080/v1', 'http://localhost:8080/v1'],
    ['http://127.0.0.1/v1', 'http://127.0.0.1/v1'],
    ['http://[::1]:8080/v1/', 'http://[::1]:8080/v1'],
  ])('normalize the URL %s', (given, normal) => {
    expect(settingsWith({ SCANFEED_BASE_URL: given }).service.baseUrl).toBe(normal);
  });

  test('reject plain HTTP to another host unless SCANFEED_ALLOW_HTTP allows it', () => {
    const env = { SCANFEED_BASE_URL: 'http://mesh.example/v1' };
    expect(mistakesWith(env).message).toContain('SCANFEED_ALLOW_HTTP=true');
    expect(settingsWith({ ...env, SCANFEED_ALLOW_HTTP: 'true' }).service.baseUrl).toBe('http://mesh.example/v1');
  });

  test('report all mistakes together', () => {
    const env = { SCANFEED_PAGE_LIMIT: '0', SCANFEED_LOG_LEVEL: 'loud', DATABASE_URL: 'mysql://db' };
    const read = () => readSettings(env, { readFile: files({}) });
    expect(read).toThrow(SettingsError);
    try {
      read();
    } catch (error) {
      const names = (error as SettingsError).mistakes.map(({ variable }) => variable);
      expect(names.sort()).toEqual([
        'DATABASE_URL',
        'SCANFEED_API_KEY',
        'SCANFEED_BASE_URL',
        'SCANFEED_LOG_LEVEL',
        'SCANFEED_PAGE_LIMIT',
      ]);
    }
  });

  test('treat an empty variable as not set', () => {
    expect(settingsWith({ SCANFEED_PAGE_LIMIT: '', SCANFEED_DOCUMENT_TYPE: '' }).feed).toMatchObject({
      pageLimit: 200,
      filters: { documentType: null },
    });
    expect(mistakesWith({ SCANFEED_API_KEY: '' }).mistakes).toMatchObject([
      { variable: 'SCANFEED_API_KEY', value: null },
    ]);
  });

  test('check only the requested groups', () => {
    const env = { DATABASE_URL: LEAST.DATABASE_URL, SCANFEED_PAGE_LIMIT: 'wrong' };
    const settings = readSettings(env, { need: ['database'] });
    expect(Object.keys(settings).sort()).toEqual(['database', 'warnings']);
    expect(() => readSettings(env, { need: ['database', 'feed'] })).toThrow('SCANFEED_PAGE_LIMIT');
  });

  test('warn about unknown names with a suggestion, but not about names from Kubernetes', () => {
    const { warnings } = settingsWith({
      SCANFEED_POL_INTERVAL: '5s',
      SCANFEED_SCHEMA: 'invoices',
      SCANFEED_WEATHER_IN_SPRING: 'x',
      SCANFEED_PORT: 'tcp://10.0.0.1:9847',
      SCANFEED_PORT_9847_TCP_ADDR: '10.0.0.1',
      SCANFEED_SERVICE_HOST: '10.0.0.1',
    });
    expect(warnings).toEqual([
      'SCANFEED_POL_INTERVAL is not a setting and is ignored; did you mean SCANFEED_POLL_INTERVAL?',
      'SCANFEED_SCHEMA is not a setting and is ignored; did you mean SCANFEED_DATABASE_SCHEMA?',
      'SCANFEED_WEATHER_IN_SPRING is not a setting and is ignored',
    ]);
  });

  test('ignore a port that Kubernetes set for a service named scanfeed-admin', () => {
    const { admin, warnings } = settingsWith({ SCANFEED_ADMIN_PORT: 'tcp://10.0.0.1:9847' });
    expect(admin.port).toBe(9847);
    expect(warnings).toEqual([expect.stringContaining('SCANFEED_ADMIN_PORT')]);
  });

  test('prefer the lower-case names of proxies', () => {
    const { service } = settingsWith({
      HTTPS_PROXY: 'http://large:1',
      https_proxy: 'http://small:1',
      NO_PROXY: '.local',
    });
    expect(service.readRoute().proxy).toEqual({ httpsProxy: 'http://small:1', noProxy: '.local' });
  });

  test('list fifty mistakes and count the others', () => {
    const mistakes = Array.from({ length: 60 }, (_, index) => ({
      variable: `V${index}`,
      value: null,
      allowed: 'a text',
    }));
    const lines = new SettingsError(mistakes).message.split('\n');
    expect(lines).toHaveLength(52);
    expect(lines.at(-1)).toBe('  and 10 more');
  });

  test('never crash, whatever the text of a variable', () => {
    const names = [
      'SCANFEED_POLL_INTERVAL',
      'SCANFEED_START',
      'SCANFEED_BASE_URL',
      'DATABASE_URL',
      'SCANFEED_MEMORY_BUDGET',
    ];
    fc.assert(
      fc.property(fc.constantFrom(...names), fc.string({ unit: codePoint() }), (name, value) => {
        const read = () => readSettings({ ...LEAST, [name]: value }, { readFile: files({}) });
        expect(outcomeOf(read)).toMatch(/^(accepted|SettingsError)$/);
      }),
    );
  });
});

describe('secrets', () => {
  const canary = 'canary-5f1d';

  test('never show in the settings', async () => {
    const settings = settingsWith({
      SCANFEED_API_KEY: canary,
      DATABASE_URL: `postgres://u:${canary}@h/d`,
      SCANFEED_MIGRATION_DATABASE_URL: `postgres://u:${canary}@h2/d`,
      HTTPS_PROXY: `http://u:${canary}@proxy:1`,
    });
    expect(await settings.service.readApiKey()).toBe(canary);
    expect(await settings.database.connection.password?.()).toBe(canary);
    expect(JSON.stringify(settings)).not.toContain(canary);
    expect(inspect(settings, { depth: 9, showHidden: true })).not.toContain(canary);
  });

  test.each([
    { SCANFEED_API_KEY: `${canary} with space` },
    { SCANFEED_API_KEY: `${canary}ä` },
    { DATABASE_URL: `mysql://u:${canary}@h/d` },
    { DATABASE_URL: `postgres://u:${canary}%zz@h/d` },
    { DATABASE_URL: `postgres://u:${canary}#x@h/d` },
    { DATABASE_URL: `postgres://u:${canary}@h/d?unheard=of` },
    { DATABASE_URL: `postgres://u:${canary}@h/d?sslmode=lax` },
    { DATABASE_URL: `postgres://:${canary}@h/d` },
    { SCANFEED_BASE_URL: `https://u:${canary}@h/v1` },
    { HTTPS_PROXY: `socks://u:${canary}@h` },
  ])('never show in a mistake: %j', (env) => {
    const error = mistakesWith(env);
    expect(error.mistakes).toMatchObject([{ variable: Object.keys(env)[0], value: '(hidden)' }]);
    expect(inspect(error, { depth: 9 })).not.toContain(canary);
  });

  test('include the proxy, whose file is read too, and again', async () => {
    const contents: Record<string, string> = { '/run/proxy': 'http://user:word@proxy:1\n' };
    const fromFile = (env: Record<string, string>) =>
      settingsWith({ HTTPS_PROXY_FILE: '/run/proxy', NO_PROXY: '.local', ...env }, contents).service.readRoute;
    const [large, small] = [fromFile({}), fromFile({ https_proxy: 'http://small:1' })];
    expect([large().proxy.httpsProxy, small().proxy.httpsProxy]).toEqual([
      'http://user:word@proxy:1',
      'http://small:1',
    ]);
    contents['/run/proxy'] = 'http://user:other@proxy:1';
    expect(await large.current()).toEqual({ proxy: { httpsProxy: 'http://user:other@proxy:1', noProxy: '.local' } });
    expect((await small.current()).proxy.httpsProxy).toBe('http://small:1');
    contents['/run/proxy'] = 'half of a U';
    expect((await large.current()).proxy.httpsProxy).toBe('http://user:other@proxy:1');
  });

  test('replace the additional certificates when their file changes, keeping those of Node.js', async () => {
    const [first, second] = [testCertificate('one.test').cert, testCertificate('two.test').cert];
    const contents: Record<string, string> = { '/run/ca.crt': first };
    const { readRoute } = settingsWith({ NODE_EXTRA_CA_CERTS: '/run/ca.crt' }, contents).service;
    expect([readRoute().ca, (await readRoute.current()).ca]).toEqual([undefined, undefined]); // Node.js has read it
    contents['/run/ca.crt'] = second;
    expect((await readRoute.current()).ca).toEqual([...rootCertificates, second.trimEnd()]);
    contents['/run/ca.crt'] = '';
    expect((await readRoute.current()).ca).toContain(second.trimEnd());
    contents['/run/ca.crt'] = first;
    expect((await readRoute.current()).ca).toBeUndefined();
  });

  test.each(['', 'no certificate'])('report additional certificates that cannot be used: "%s"', (text) => {
    const error = mistakesWith({ NODE_EXTRA_CA_CERTS: '/run/ca.crt' }, { '/run/ca.crt': text });
    expect(error.mistakes).toMatchObject([{ variable: 'NODE_EXTRA_CA_CERTS' }]);
  });

  test.each(ALL_VARIABLES.filter(({ secret }) => secret))('report a missing file of $name', ({ name }) => {
    const error = mistakesWith({ [name]: '', [`${name}_FILE`]: '/run/none' });
    expect(error.mistakes).toMatchObject([{ variable: `${name}_FILE`, reason: 'reading it failed (ENOENT)' }]);
  });

  test('are read from a file without the trailing line break', async () => {
    const { service } = settingsWith(
      { SCANFEED_API_KEY: '', SCANFEED_API_KEY_FILE: '/run/key' },
      { '/run/key': `${canary}\r\n` },
    );
    expect(await service.readApiKey()).toBe(canary);
  });

  test('change when their file changes, and keep the last valid value while it is unusable', async () => {
    const contents: Record<string, string> = { '/run/key': 'first\n', '/run/url': 'postgres://u:one@h/d' };
    const env = {
      SCANFEED_API_KEY: '',
      SCANFEED_API_KEY_FILE: '/run/key',
      DATABASE_URL: '',
      DATABASE_URL_FILE: '/run/url',
    };
    const { service, database } = settingsWith(env, contents);
    contents['/run/key'] = 'second\n';
    contents['/run/url'] = 'postgres://u:two@h/d';
    expect([await service.readApiKey(), await database.connection.password?.()]).toEqual(['second', 'two']);
    contents['/run/key'] = '';
    expect(await service.readApiKey()).toBe('second');
    contents['/run/key'] = 'with space';
    expect(await service.readApiKey()).toBe('second');
    delete contents['/run/key'];
    expect(await service.readApiKey()).toBe('second');
    contents['/run/key'] = 'third';
    expect(await service.readApiKey()).toBe('third');
  });

  test.each([
    ['both given', { SCANFEED_API_KEY_FILE: '/run/key' }, { '/run/key': 'x' }, 'is set too'],
    ['a missing file', { SCANFEED_API_KEY: '', SCANFEED_API_KEY_FILE: '/run/none' }, {}, 'ENOENT'],
    ['an empty file', { SCANFEED_API_KEY: '', SCANFEED_API_KEY_FILE: '/run/key' }, { '/run/key': '\n' }, 'empty'],
  ])('reject %s', (_what, env, contents, text) => {
    const { mistakes, message } = mistakesWith(env, contents);
    expect(mistakes).toMatchObject([{ variable: 'SCANFEED_API_KEY_FILE' }]);
    expect(message).toContain(text);
  });
});
