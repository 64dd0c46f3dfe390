import { expect, it } from 'vitest';
import { isDeadPredecessor, nameHolder } from '../../src/daemon/predecessor.js';

const OWN = process.pid;
const LIVING = process.ppid;
/** Above the largest id of a process. */
const ENDED = 2 ** 22 + 1;

it.each([
  ['with an id that no process has', nameHolder('pod-a', ENDED), true],
  ['with the id of this process, as in a restarted container', nameHolder('pod-a', OWN), true],
  ['that is alive', nameHolder('pod-a', LIVING), false],
  ['of another host', nameHolder('pod-b', ENDED), false],
  ['of another host, with the id of this process', nameHolder('pod-b', OWN), false],
  ['without a process id', 'pod-a/x/0a1b2c3d', false],
  ['with the id of a process group', 'pod-a/0/0a1b2c3d', false],
  ['of another form', 'pod-a', false],
])('decides whether a holder is a dead predecessor when it is one %s', (_, holder, dead) => {
  expect(isDeadPredecessor(holder, 'pod-a', OWN)).toBe(dead);
});
