import type { LookupAddress } from 'node:dns';
import type { VirtualClock } from './virtual-clock.js';

/** The lookups of the operating system: two threads for a process. It gives up names whose servers are silent after a minute. */
export function systemLookups(clock: VirtualClock, addresses: readonly LookupAddress[]) {
  const silent = new Set<string>();
  const answers = { asked: 0, error: null as Error | null };
  const waiting: (() => void)[] = [];
  let free = 2;
  const query = async (name: string) => {
    answers.asked += 1;
    if (free === 0) await new Promise<void>((resolve) => waiting.push(resolve));
    else free -= 1;
    await clock.pause(silent.has(name) ? 60_000 : 10);
    const next = waiting.shift();
    if (next === undefined) free += 1;
    else next();
    if (silent.has(name)) throw lookupFailure('EAI_AGAIN');
    if (answers.error !== null) throw answers.error;
    return addresses;
  };
  return { query, silent, answers };
}

/** The error of a lookup. */
export const lookupFailure = (code: string) => Object.assign(new Error(code), { code });
