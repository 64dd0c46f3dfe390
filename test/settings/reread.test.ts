import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { readFeedsText } from '../../src/settings/feeds-file.js';
import { readSettings } from '../../src/settings/settings.js';
import { LEAST } from '../support/settings.js';

it.each([
  [
    'the file of a variable',
    (file: string) => readSettings({ ...LEAST, SCANFEED_API_KEY: '', SCANFEED_API_KEY_FILE: file }).service.readApiKey,
  ],
  ['the feeds file', (file: string) => () => readFeedsText(file)],
])('does not block the process while %s is read again and that takes long, as on a network', async (_, readerOf) => {
  const folder = mkdtempSync(join(tmpdir(), 'scanfeed-reread-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'key');
  writeFileSync(file, 'first');
  const read = readerOf(file);
  rmSync(file);
  execFileSync('mkfifo', [file]);
  const writer = spawn('sh', ['-c', 'sleep 0.3; printf second > "$0"', file]);
  onTestFinished(() => void writer.kill());
  const events: string[] = [];
  const timer = new Promise<void>((resolve) => setTimeout(resolve, 10)).then(() => events.push('timer'));
  await Promise.all([timer, read().then((text) => events.push(text))]);
  expect(events).toEqual(['timer', 'second']);
});
