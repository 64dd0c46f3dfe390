import { syncFeed } from '../../src/sync/sync-feed.js';
import { type EngineOptions, engineContext } from './engine.js';
import type { VirtualClock } from './virtual-clock.js';

type Followed = EngineOptions & Required<Pick<EngineOptions, 'service' | 'store'>>;

/** Starts the engine on a clock that the test moves. Returns a function that stops it. */
export function startFollowing(clock: VirtualClock, options: Followed): () => Promise<void> {
  const stop = new AbortController();
  const following = syncFeed(engineContext({ clock, ...options }), stop.signal);
  return () => {
    stop.abort();
    return clock.run(following);
  };
}

/** Runs the engine for some milliseconds. */
export async function followFor(ms: number, clock: VirtualClock, options: Followed): Promise<void> {
  const stop = startFollowing(clock, options);
  await clock.advance(ms);
  await stop();
}
