import { execFile, spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, expect, it } from 'vitest';

const run = promisify(execFile);
const canIsolate = spawnSync('unshare', ['--net', '--mount', 'ip', 'link']).status === 0;
if (!canIsolate) console.warn('skipped: a network namespace requires Linux, root and ip (.ci/install-tools iproute2)');

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'scanfeed-dns-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

it.skipIf(!canIsolate)(
  'looks up a name within the deadline while the DNS servers of four others are silent',
  async () => {
    const bundle = await rolldown({ input: 'test/support/silent-dns/probe.ts', platform: 'node' });
    await bundle.write({ file: join(folder, 'probe.mjs'), format: 'esm' });
    await writeFile(join(folder, 'resolv.conf'), 'nameserver 127.0.0.1\noptions timeout:5 attempts:2\n');
    const script = 'ip link set lo up && mount --bind "$0/resolv.conf" /etc/resolv.conf && exec "$1" "$0/probe.mjs"';
    const { stdout } = await run('unshare', ['--net', '--mount', 'sh', '-c', script, folder, process.execPath]);
    const waits = JSON.parse(stdout) as (number | null)[];
    expect(waits).toHaveLength(20);
    expect(waits).not.toContain(null);
    expect(Math.max(...waits.map(Number))).toBeLessThan(8_000); // the deadline and a busy machine
    // The first lookups wait for the deadline, then the last addresses are used.
    expect(Math.max(...waits.slice(8).map(Number))).toBeLessThan(4_000);
  },
);
