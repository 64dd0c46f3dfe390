import { expect, it } from 'vitest';
import { isDeadPredecessor, nameHolder } from '../../src/daemon/predecessor.js';

const isDead = (holder: string, alive: readonly number[] = []) =>
  isDeadPredecessor(holder, 'pod-a', 7, (pid) => alive.includes(pid));

it.each([
  ['with an id that no process has', 'pod-a/12/0a1b2c3d', [], true],
  ['with the id of this process, as in a restarted container', 'pod-a/7/0a1b2c3d', [7], true],
  ['that is alive', 'pod-a/12/0a1b2c3d', [12], false],
  ['of another host', 'pod-b/12/0a1b2c3d', [], false],
  ['of another host, with the id of this process', 'pod-b/7/0a1b2c3d', [7], false],
  ['without a process id', 'pod-a/x/0a1b2c3d', [], false],
  ['with the id of a process group', 'pod-a/0/0a1b2c3d', [], false],
  ['of another form', 'pod-a', [], false],
])('decides whether a holder is a dead predecessor when it is one %s', (_, holder, alive, dead) => {
  expect(isDead(holder, alive)).toBe(dead);
});

it('detects a live process when it checks one of this machine', () => {
  expect(isDeadPredecessor(nameHolder('pod-a', process.ppid), 'pod-a', 7)).toBe(false);
  expect(isDeadPredecessor(nameHolder('pod-a', 2 ** 22 + 1), 'pod-a', 7)).toBe(true); // above the largest id
});
