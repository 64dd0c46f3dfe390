import { describe, expect, it } from 'vitest';
import { type Collect, createProcessBudget } from '../../src/daemon/memory.js';

const MIB = 1024 * 1024;

/** Releases bodies of these sizes, and returns the flavors of the collections that followed. */
async function collectionsAfter(...bodies: number[]): Promise<string[]> {
  const flavors: string[] = [];
  const collect: Collect = ({ flavor }) => flavors.push(flavor);
  const budget = createProcessBudget(64 * MIB, collect);
  for (const bytes of bodies) {
    const ticket = budget.enqueue('feed');
    ticket.tryReserve(bytes, 'page', new AbortController().signal)?.finish(bytes);
    ticket.close();
  }
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

  it('collects at once and returns unused pages to the system when a large body was released', async () => {
    expect(await collectionsAfter(4 * MIB, 12 * MIB)).toEqual(['last-resort']);
  });
});
