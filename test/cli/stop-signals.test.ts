import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import { endOnSignals } from '../../src/cli/context/stop-signals.js';

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
