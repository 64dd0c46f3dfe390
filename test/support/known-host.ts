import { promises } from 'node:dns';
import { promisify } from 'node:util';
import { onTestFinished, vi } from 'vitest';
import { lookupHost } from '../../src/core/host-lookup.js';

/** Lets the lookup of the process know a name at 127.0.0.1, which cannot be looked up again during the test. */
export async function knowHost(name: string): Promise<void> {
  const query = vi.spyOn(promises, 'lookup');
  onTestFinished(() => query.mockRestore());
  query.mockResolvedValueOnce([{ address: '127.0.0.1', family: 4 }] as never);
  await promisify(lookupHost)(name, { all: true });
  query.mockRejectedValue(Object.assign(new Error('no DNS'), { code: 'EAI_AGAIN' }));
}
