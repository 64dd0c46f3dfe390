import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, inject, test } from 'vitest';

const run = promisify(execFile);
const project = inject('project');
const tsc = join(project, 'node_modules', 'typescript', 'bin', 'tsc');

test.each([
  ['NodeNext', 'NodeNext'],
  ['ESNext', 'Bundler'],
])('a strict project compiles against it (module %s, resolution %s)', async (module, moduleResolution) => {
  const compilerOptions = {
    ...{ target: 'ES2022', module, moduleResolution, types: ['node'], noEmit: true, resolveJsonModule: true },
    ...{ strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, skipLibCheck: false },
  };
  const folder = join(project, moduleResolution);
  await mkdir(folder);
  await writeFile(join(folder, 'consumer.ts'), CONSUMER);
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['consumer.ts'] }));
  const { stdout } = await run(process.execPath, [tsc, '-p', folder]).catch((error) => error as { stdout: string });
  expect(stdout).toBe('');
});

const CONSUMER = `
import {
  type FeedEntry,
  type FollowedPage,
  followFeed,
  HttpStatusError,
  RecognitionClient,
  type Run,
  ServiceError,
  type SubmitResult,
} from 'scanfeed';
import { type Emulator, startEmulator } from 'scanfeed/emulator';
import description from 'scanfeed/openapi.json' with { type: 'json' };

export const version: string = description.openapi;

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
  // @ts-expect-error a misspelt option
  followFeed(client, { enviroment: 'prod' });
}

export function describe(entry: FeedEntry): string {
  // @ts-expect-error a misspelt field
  console.log(entry.scanID);
  // @ts-expect-error only a completed entry has data
  console.log(entry.data);
  const unknown: unknown = entry.extra['futureField'];
  if (entry.status === 'failed') {
    const reason: string | null = entry.failureReason;
    // @ts-expect-error a failed entry has no data
    console.log(entry.data, unknown);
    return reason ?? entry.error ?? '';
  }
  // @ts-expect-error a completed entry has no reason
  console.log(entry.failureReason);
  const amount: unknown = entry.data?.['bruttobetrag'];
  return entry.documentType.name ?? String(amount);
}

export function isOpen(run: Run): boolean {
  // @ts-expect-error there is no such status
  if (run.status === 'uploaded') return true;
  return run.status === 'processing';
}

export async function submit(client: RecognitionClient, file: Blob): Promise<Run | null> {
  try {
    const request = { file, fileName: 'a.pdf', documentType: 'rechnung', environment: 'test' } as const;
    const result: SubmitResult = await client.submit(request);
    return await client.getRun(result.scanId);
  } catch (error) {
    if (error instanceof HttpStatusError && error.status === 401) console.log(error.germanText);
    if (error instanceof ServiceError && error.action === 'retry') return null;
    throw error;
  }
}

export async function emulate(): Promise<string> {
  const emulator: Emulator = await startEmulator({ history: 10, switches: { truncatedShare: 0 } });
  emulator.set({ latencyMs: undefined, redelivery: 'behind' });
  // @ts-expect-error a misspelt switch
  emulator.set({ latency: 5 });
  // @ts-expect-error a misspelt field
  emulator.appendRun({ partner: 'x' });
  return emulator.appendRun({ partnerName: null }).scanId;
}
`;
