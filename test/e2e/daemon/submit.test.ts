import { expect, test } from 'vitest';
import { folderOf, pdf } from '../../support/pdfs.js';
import { eventually } from '../../support/program/daemon.js';
import { useProgram } from '../../support/program/setup.js';

const setup = useProgram();
const ARGS = ['--document-type', 'rechnung', '--environment', 'test'];

test('Ctrl-C ends a submission immediately and reports the known state of each file', async () => {
  const service = await setup.startService({ switches: { processingMs: 3_600_000 } });
  const { path } = await folderOf({ 'a.pdf': pdf('a'), 'b.pdf': pdf('b'), 'c.pdf': pdf('c') });
  const env = {
    SCANFEED_BASE_URL: service.url,
    SCANFEED_API_KEY: setup.secrets.apiKey,
    SCANFEED_REQUEST_TIMEOUT: '10m',
  };

  const waiting = setup.program(['submit', path('a.pdf'), ...ARGS, '--wait'], env);
  await eventually(() => waiting.stdout).toMatch(/submitted as/);
  expect(await waiting.stop('SIGINT')).toEqual({ code: 130, signal: null });
  expect(waiting.stderr).toBe(
    '1 file: 1 submitted, 1 still processing\nscanfeed: interrupted; repeat the command to submit the rest; nothing is submitted twice\n',
  );

  service.addFault({ kind: 'hang', operation: 'submit' });
  const sending = setup.program(['submit', path(), ...ARGS, '--concurrency', '2'], env);
  await eventually(() => service.requests.count('submit')).toBe(3);
  expect(await sending.stop('SIGINT')).toEqual({ code: 130, signal: null });
  expect(sending.stdout.match(/[ab]\.pdf: interrupted in transit: may or may not have been submitted\n/g)).toHaveLength(
    2,
  );
  expect(sending.stderr).toMatch(/^3 files: 2 interrupted in transit, 1 not sent\nscanfeed: interrupted; /);
  expect(service.requests.count('submit')).toBe(3);
});
