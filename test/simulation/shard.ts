/** Process of the command: simulates the batches it receives until the command disconnects. */
import { simulateSeeds } from './simulate-seeds.js';

process.on('message', async ({ first, count }: { first: number; count: number }) => {
  process.send?.(await simulateSeeds(first, count));
});
