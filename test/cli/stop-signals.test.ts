import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import { endOnSignals, untilInterrupted } from '../../src/cli/context/stop-signals.js';

function process(pid: number) {
  const exits: number[] = [];
  const double = Object.assign(new EventEmitter(), { pid, exit: (code: number) => void exits.push(code) });
  endOnSignals(double as unknown as NodeJS.Process);
  return { double, exits };
}

test('process 1 ends on a signal when nothing else handles it', () => {
  const { double, exits } = process(1);
  double.emit('SIGTERM', 'SIGTERM');
  double.emit('SIGINT', 'SIGINT');
  expect(exits).toEqual([143, 130]);
});

test('process 1 continues on a signal when something else handles it', () => {
  const { double, exits } = process(1);
  double.on('SIGTERM', () => {});
  double.emit('SIGTERM', 'SIGTERM');
  expect(exits).toEqual([]);
});

test('other processes get no handlers', () => {
  const { double } = process(4711);
  expect(double.eventNames()).toEqual([]);
});

test.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)('%s interrupts the work of a command, whose exit code is then %i', async (name, exitCode) => {
  const interrupted = untilInterrupted(async (signal) => {
    globalThis.process.emit(name, name);
    signal.throwIfAborted();
  });
  expect(await interrupted).toBe(exitCode);
});

test('a command that no signal interrupts has no exit code of a signal, and its failure is thrown', async () => {
  expect(await untilInterrupted(async () => {})).toBeNull();
  await expect(untilInterrupted(() => Promise.reject(new Error('of the work')))).rejects.toThrow('of the work');
});
