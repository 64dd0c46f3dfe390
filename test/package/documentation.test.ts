import { execFile } from 'node:child_process';
import { cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, inject, test } from 'vitest';
import { startEmulator } from '../../src/emulator/index.js';

const run = promisify(execFile);
const project = inject('project');

/** Returns the first block of docs/library.md that begins like this. */
async function blockOf(language: string, beginning = ''): Promise<string> {
  const text = await readFile(join(inject('root'), 'docs', 'library.md'), 'utf8');
  const blocks = [...text.matchAll(/```(\w+)\n([\s\S]*?)```/g)];
  const [, , code = ''] = blocks.find(([, of, code]) => of === language && code?.startsWith(beginning)) ?? [];
  expect(code).not.toBe('');
  return code;
}

test('the program of docs/library.md compiles strictly, and its test passes against the emulator', async () => {
  const folder = join(project, 'invoices');
  await mkdir(folder);
  const compilerOptions = {
    ...{ target: 'ES2022', module: 'NodeNext', types: ['node'], noEmit: true, noUnusedLocals: true },
    ...{ strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true },
  };
  await writeFile(join(folder, 'invoices.ts'), await blockOf('ts', '// invoices.ts'));
  await writeFile(join(folder, 'invoices.test.ts'), await blockOf('ts', '// invoices.test.ts'));
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }));
  await cp(join(project, 'package.json'), join(folder, 'package.json'));
  const tools = join(project, 'node_modules');
  const compiled = await run(process.execPath, [join(tools, 'typescript/bin/tsc'), '-p', folder]).catch(
    (error) => error,
  );
  expect(compiled).toMatchObject({ stdout: '' });
  const flags = ['run', '--root', folder, '--reporter', 'json'];
  const { stdout } = await run(process.execPath, [join(tools, 'vitest/vitest.mjs'), ...flags], { cwd: folder });
  expect(JSON.parse(stdout)).toMatchObject({ success: true, numPassedTests: 2, numTotalTests: 2 });
});

test('the example of docs/library.md follows a feed, and resumes at its stored cursor', async () => {
  await writeFile(join(project, 'example.js'), await blockOf('js'));
  const emulator = await startEmulator({ switches: { truncatedShare: 0 } });
  try {
    const scanIds = emulator.appendCount(5, { environment: 'prod', status: 'completed' }).map(({ scanId }) => scanId);
    emulator.appendRun({ environment: 'prod', status: 'completed', truncated: 'data' });
    expect(await untilUpToDate(emulator)).toHaveLength(6);
    const stored = await readdir(join(project, 'runs'));
    expect(stored).toHaveLength(6);
    for (const name of stored) {
      expect(JSON.parse(await readFile(join(project, 'runs', name), 'utf8'))).toMatchObject({
        data: { belegart: expect.any(String) },
      });
    }
    const corrected = emulator.correct(scanIds[0] ?? '', { status: 'completed' });
    expect(await untilUpToDate(emulator)).toEqual([`${corrected.scanId} 2 completed`]);
  } finally {
    await emulator.close();
  }
});

/** Returns the lines that the example prints until it is up to date. Then it is interrupted. */
async function untilUpToDate({ url, apiKey }: { readonly url: string; readonly apiKey: string }): Promise<string[]> {
  const env = { ...process.env, SCANFEED_BASE_URL: url, SCANFEED_API_KEY: apiKey };
  const running = run(process.execPath, ['example.js'], { cwd: project, env });
  let printed = '';
  running.child.stdout?.on('data', (text: string) => {
    printed += text;
    if (printed.includes('up to date\n')) running.child.kill('SIGINT');
  });
  const { stdout, stderr } = await running;
  expect(stderr).toBe('');
  return stdout.split('\n').filter((line) => line !== '' && line !== 'up to date');
}
