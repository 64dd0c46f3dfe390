import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { explainHang } from '../support/deployment/explain-hang.js';

test.runIf(process.platform === 'linux')('a program that hangs is found where it hangs', async ({ onTestFinished }) => {
  // Ends by itself long after the test, so that a run of the tests that is killed leaves no core busy for good.
  const script = `process.stdout.write("begun");
    (function goesRoundInCircles() { for (const end = Date.now() + 120_000; Date.now() < end; ); })();`;
  const child = spawn(process.execPath, ['--eval', script]);
  onTestFinished(() => void child.kill('SIGKILL'));
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  await once(child.stdout, 'data');
  const pid = child.pid ?? 0;
  const explained = await explainHang({ pid, signal: (name) => child.kill(name), output: () => output });
  expect(explained).toMatch(/^-- threads\n(.*\n)*\d+ \S+ R \d+ ticks/);
  expect(explained).toMatch(/^-- JavaScript stack\ngoesRoundInCircles /m);
  expect(explained).toMatch(/^-- end of its output\nbegun/m);
});
