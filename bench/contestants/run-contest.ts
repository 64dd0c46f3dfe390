import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { ServiceAddress } from '../service/protocol.js';
import type { BenchDatabase } from '../support/postgres.js';
import type { ContestConfig, Contested } from './contest.js';

/** Who else writes runs, each in a process of its own. */
export type Contestant =
  | 'bare-chain'
  | 'bare-commits'
  | 'copy-into-staging'
  | 'experts-script'
  | 'hand-written-script'
  | 'statement-a-row';

/** Lets a contestant prepare, and then go; `onStart` is called in between. */
export async function runContest(
  contestant: Contestant,
  service: ServiceAddress,
  database: Pick<BenchDatabase, 'url'> | null,
  { onStart = () => {}, pagesTogether = 1 }: { onStart?: () => void; pagesTogether?: number } = {},
): Promise<Contested> {
  const config: ContestConfig = {
    databaseUrl: database?.url ?? '',
    serviceUrl: service.url,
    apiKey: service.apiKey,
    pagesTogether,
  };
  const program = fileURLToPath(new URL(`${contestant}.js`, import.meta.url));
  const child = fork(program, [JSON.stringify(config)], { execArgv: ['--enable-source-maps'] });
  const failed = once(child, 'exit').then(([code]) => {
    throw new Error(`${contestant} ended early (${String(code)})`);
  });
  failed.catch(() => {});
  try {
    await Promise.race([once(child, 'message'), failed]);
    onStart();
    const result = once(child, 'message');
    child.send('go');
    return (await Promise.race([result, failed]))[0] as Contested;
  } finally {
    child.kill('SIGKILL');
  }
}
