import { execFileSync } from 'node:child_process';
import { describe, expect, it, vi } from 'vitest';
import { heapBytes } from '../../src/core/heap-bytes.js';
import { type Collect, createProcessBudget, largestAnswerBytes } from '../../src/daemon/memory.js';
import { imageOptions } from '../support/program/image-options.js';

const MIB = 1024 * 1024;

/** A budget, the flavors of its collections, and a function that releases a body of this size. */
function createBudget() {
  const flavors: string[] = [];
  const collect: Collect = ({ flavor }) => flavors.push(flavor);
  const budget = createProcessBudget(64 * MIB, collect);
  const release = (bytes: number) => {
    const ticket = budget.enqueue('feed');
    ticket.tryReserve(bytes);
    ticket.close();
  };
  return { flavors, release };
}

/** Releases bodies of these sizes, and returns the flavors of the collections that followed at once. */
async function collectionsAfter(...bodies: number[]): Promise<string[]> {
  const { flavors, release } = createBudget();
  for (const bytes of bodies) release(bytes);
  await new Promise(setImmediate);
  return flavors;
}

describe('createProcessBudget', () => {
  it('leaves the collection to V8 while fewer than 16 MiB of ordinary bodies were released', async () => {
    expect(await collectionsAfter(...Array<number>(3).fill(4 * MIB))).toEqual([]);
  });

  it('collects once when 16 MiB of ordinary bodies were released', async () => {
    expect(await collectionsAfter(...Array<number>(5).fill(4 * MIB))).toEqual(['regular']);
  });

  it('returns unused pages to the system a minute after the last of such collections', () => {
    vi.useFakeTimers();
    try {
      const { flavors, release } = createBudget();
      for (let body = 0; body < 4; body += 1) release(4 * MIB);
      vi.advanceTimersByTime(59_000);
      for (let body = 0; body < 4; body += 1) release(4 * MIB);
      vi.advanceTimersByTime(59_000);
      expect(flavors).toEqual(['regular', 'regular']);
      vi.advanceTimersByTime(60_000);
      expect(flavors).toEqual(['regular', 'regular', 'last-resort']);
    } finally {
      vi.useRealTimers();
    }
  });

  it('collects at once and returns unused pages to the system when a large body was released', async () => {
    expect(await collectionsAfter(4 * MIB, 12 * MIB)).toEqual(['last-resort']);
  });
});

describe('the memory of the process', () => {
  it('is that of the image, although NODE_OPTIONS are replaced', () => {
    const print = 'process.stdout.write(String(v8.getHeapStatistics().heap_size_limit))';
    const env = { PATH: process.env.PATH, NODE_OPTIONS: '--max-old-space-size=4096 --max-semi-space-size=16' };
    const heapLimit = Number(execFileSync(process.execPath, [...imageOptions(256), '--eval', print], { env }));
    expect(heapLimit).toBe(140 * MIB);
    expect(largestAnswerBytes(heapBytes(heapLimit, 256 * MIB))).toBe(60 * MIB);
  });

  it.each([
    ['the heap of the image', 140, 256, 60],
    ['a heap that is larger than half of the container', 259, 256, 60],
    ['a heap that is smaller than half of the container', 140, 1024, 60],
    ['a machine without a limit', 4144, 0, 256],
    ['a control group without a limit', 4144, 2 ** 44, 256],
    ['a container that is too small', 70, 128, 16],
  ])('has place for answers that follow from %s', (_, heapMib, constrainedMib, answerMib) => {
    expect(largestAnswerBytes(heapBytes(heapMib * MIB, constrainedMib * MIB))).toBe(answerMib * MIB);
  });
});
