import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** A collection may finish one that began earlier, which keeps what was reachable then, and timers keep some objects for a turn. */
const MAX_COLLECTIONS = 20;

/** Collects garbage until the target is gone. Returns false if something keeps it in memory. */
export async function isCollected(target: WeakRef<object> | undefined): Promise<boolean> {
  for (let times = 0; target !== undefined && times < MAX_COLLECTIONS; times += 1) {
    await turn(); // a weak reference that was read keeps its target until the end of the task
    collect();
    if (target.deref() === undefined) return true;
  }
  return false;
}
