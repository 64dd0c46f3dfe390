/** A process of the command: simulates the batches it is sent, and ends when it is let go. */
import { simulateSeeds } from './simulate-seeds.js';

process.on('message', async ({ first, count }: { first: number; count: number }) => {
  process.send?.(await simulateSeeds(first, count));
});
