import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { publint } from 'publint';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startEmulator } from '../../src/emulator/index.js';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../', import.meta.url));
const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
/** What the library needs of the package's dependencies, and what is needed to compile against it. */
const NEEDED = ['undici', 'zod', 'undici-types', '@types/node'];

let folder: string;
let tarball: string;
/** A project that has the packed package, and nothing that only the daemon needs. */
let consumer: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'scanfeed-package-'));
  const source = join(folder, 'package');
  await mkdir(source);
  const { files } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { files: string[] };
  for (const name of ['package.json', ...files.filter((name) => name !== 'dist')]) {
    await cp(join(root, name), join(source, name), { recursive: true });
  }
  await run(process.execPath, [
    tsc,
    '-p',
    join(root, 'tsconfig.build.json'),
    '--noCheck',
    '--outDir',
    join(source, 'dist'),
  ]);
  await run('npm', ['pack', '--ignore-scripts', '--pack-destination', folder], { cwd: source });
  tarball = join(folder, (await readdir(folder)).find((name) => name.endsWith('.tgz')) ?? '');
  consumer = join(folder, 'consumer');
  const modules = join(consumer, 'node_modules');
  await mkdir(join(modules, '@types'), { recursive: true });
  for (const name of NEEDED) await symlink(join(root, 'node_modules', name), join(modules, name));
  await run('tar', ['-xzf', tarball, '-C', modules]);
  await run('mv', [join(modules, 'package'), join(modules, 'scanfeed')]);
  await writeFile(join(consumer, 'package.json'), '{"type":"module"}');
});
afterAll(() => rm(folder, { recursive: true, force: true }));

test('the packed package has the runbooks that the admin server serves', async () => {
  const packed = await readdir(join(consumer, 'node_modules/scanfeed/docs/runbooks'));
  expect(packed.sort()).toEqual((await readdir(join(root, 'docs/runbooks'))).sort());
});

test('the packed package has nothing that publint finds wrong', async () => {
  const bytes = await readFile(tarball);
  const pack = { tarball: bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) as ArrayBuffer };
  const { messages } = await publint({ pack, strict: true });
  expect(messages).toEqual([]);
});

test.each([
  ['NodeNext', 'NodeNext'],
  ['ESNext', 'Bundler'],
])('a strict project compiles against it (module %s, resolution %s)', async (module, moduleResolution) => {
  const compilerOptions = {
    ...{ target: 'ES2022', module, moduleResolution, types: ['node'], noEmit: true },
    ...{ strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, skipLibCheck: false },
  };
  const project = join(consumer, `${moduleResolution}.json`);
  await writeFile(join(consumer, 'consumer.ts'), CONSUMER);
  await writeFile(project, JSON.stringify({ compilerOptions, files: ['consumer.ts'] }));
  const { stdout } = await run(process.execPath, [tsc, '-p', project]).catch((error) => error as { stdout: string });
  expect(stdout).toBe('');
});

const CONSUMER = `
import {
  AuthenticationError,
  type FeedEntry,
  type FollowedPage,
  followFeed,
  RecognitionClient,
  type Run,
  ServiceError,
  type SubmitResult,
} from 'scanfeed';

export async function follow(client: RecognitionClient, cursor: string | null, signal: AbortSignal): Promise<void> {
  const pages: AsyncGenerator<FollowedPage, void, undefined> = followFeed(client, {
    cursor,
    signal,
    environment: 'all',
    waitOut: ({ kind, action }) => action === 'retry' || kind === 'not_json',
    onFailure: ({ error, pauseMs }) => console.log(error.message, pauseMs.toFixed(0)),
  });
  for await (const page of pages) {
    const entries: readonly FeedEntry[] = page.entries;
    const kept: string | null = page.cursor;
    console.log(entries.map(({ scanId, revision }) => scanId + revision.toFixed(0)), kept);
  }
  // @ts-expect-error there is no such environment
  followFeed(client, { environment: 'staging' });
}

export async function submit(client: RecognitionClient, file: Blob): Promise<Run | null> {
  try {
    const request = { file, fileName: 'a.pdf', documentType: 'rechnung', environment: 'test' } as const;
    const result: SubmitResult = await client.submit(request);
    return await client.getRun(result.scanId);
  } catch (error) {
    if (error instanceof AuthenticationError) console.log(error.germanText);
    if (error instanceof ServiceError && error.action === 'retry') return null;
    throw error;
  }
}
`;

test('the example of the documentation follows a feed, needing nothing of the daemon, and goes on where it stood', async () => {
  const [, example = ''] = /```js\n([\s\S]*?)```/.exec(await readFile(join(root, 'docs/library.md'), 'utf8')) ?? [];
  await writeFile(join(consumer, 'example.js'), example);
  const emulator = await startEmulator({ history: 0, switches: { truncatedShare: 0 } });
  try {
    const scanIds = emulator.appendCount(5, { environment: 'prod', status: 'completed' }).map(({ scanId }) => scanId);
    emulator.appendCount(1, { environment: 'prod', status: 'completed', truncated: 'data' });
    expect(await untilUpToDate(emulator)).toHaveLength(6);
    const stored = await readdir(join(consumer, 'runs'));
    expect(stored).toHaveLength(6);
    for (const name of stored) {
      expect(JSON.parse(await readFile(join(consumer, 'runs', name), 'utf8'))).toMatchObject({
        data: { belegart: expect.any(String) },
      });
    }
    const corrected = emulator.correct(scanIds[0] ?? '', { status: 'completed' });
    expect(await untilUpToDate(emulator)).toEqual([`${corrected.scanId} 2 completed`]);
  } finally {
    await emulator.close();
  }
});

/** What the example prints until it is up to date; then it is interrupted. */
async function untilUpToDate({ url, apiKey }: { readonly url: string; readonly apiKey: string }): Promise<string[]> {
  const env = { ...process.env, SCANFEED_BASE_URL: url, SCANFEED_API_KEY: apiKey };
  const running = run(process.execPath, ['example.js'], { cwd: consumer, env });
  let printed = '';
  running.child.stdout?.on('data', (text: string) => {
    printed += text;
    if (printed.includes('up to date\n')) running.child.kill('SIGINT');
  });
  const { stdout, stderr } = await running;
  expect(stderr).toBe('');
  return stdout.split('\n').filter((line) => line !== '' && line !== 'up to date');
}
