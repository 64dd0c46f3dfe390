import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { exists } from '../../../src/demo/embedded-postgres/cluster-files.js';
import { runAfterThisProcess } from '../../../src/demo/embedded-postgres/guardian.js';
import { canEnter, type ServerUser } from '../../../src/demo/embedded-postgres/server-user.js';

/** A folder for a server whose data is not kept. */
export interface TemporaryFolder {
  readonly path: string;
  /** Where the data of the server belongs. */
  readonly data: string;
  remove(): Promise<void>;
}

/** Makes a folder that the server's account can reach. It is removed with this process at the latest. */
export async function makeTemporaryFolder(user: ServerUser | null): Promise<TemporaryFolder> {
  for (const parent of new Set([tmpdir(), '/tmp', '/var/tmp'])) {
    if (!(await exists(parent)) || !(await canEnter(parent, user))) continue;
    const path = await mkdtemp(join(parent, 'scanfeed-postgres-'));
    await chmod(path, 0o711);
    const data = join(path, 'data');
    const dismiss = runAfterThisProcess(REMOVE, path, data);
    const remove = async () => {
      await rm(path, { recursive: true, force: true });
      dismiss();
    };
    return { path, data, remove };
  }
  throw new Error('No folder for temporary files is open to the account PostgreSQL runs as. Set TMPDIR.');
}

/** Removes the folder ($1) once its server has ended, or after 30 s. */
const REMOVE = `
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
  [ -e "$2/postmaster.pid" ] || break
  sleep 1
done
rm -rf "$1"
`;
