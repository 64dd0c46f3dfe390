import { describe, expect, it, vi } from 'vitest';
import { type Collect, createProcessBudget } from '../../src/daemon/memory.js';

const MIB = 1024 * 1024;

/** A budget, the flavors of its collections, and a function that releases a body of this size. */
function createBudget() {
  const flavors: string[] = [];
  const collect: Collect = ({ flavor }) => flavors.push(flavor);
  const budget = createProcessBudget(64 * MIB, undefined, collect);
  const release = (bytes: number) => {
    const ticket = budget.enqueue('feed');
    ticket.tryReserve(bytes, 'page', new AbortController().signal)?.finish(bytes);
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
  it('leaves the collection to V8 while fewer than 32 MiB of ordinary bodies were released', async () => {
    expect(await collectionsAfter(...Array<number>(7).fill(4 * MIB))).toEqual([]);
  });

  it('collects once when 32 MiB of ordinary bodies were released', async () => {
    expect(await collectionsAfter(...Array<number>(9).fill(4 * MIB))).toEqual(['regular']);
  });

  it('returns unused pages to the system a minute after the last of such collections', () => {
    vi.useFakeTimers();
    try {
      const { flavors, release } = createBudget();
      for (let body = 0; body < 8; body += 1) release(4 * MIB);
      vi.advanceTimersByTime(59_000);
      for (let body = 0; body < 8; body += 1) release(4 * MIB);
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
