import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const SCRIPT = fileURLToPath(new URL('../../packaging/render-runbooks.mjs', import.meta.url));

/** Renders the runbooks that the admin server serves, as the build does. For `beforeAll`: the tests need no build. */
export async function renderRunbooks(): Promise<void> {
  await promisify(execFile)(process.execPath, [SCRIPT]);
}
