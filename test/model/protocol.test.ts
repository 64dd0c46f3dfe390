import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, type TestContext, test } from 'vitest';
import { requireTool } from '../support/deployment/tools.js';

const MODEL = resolve('docs/model/protocol.pml');

/** Tries the executions of the model, with some names defined, until one violates a property. Returns Spin's report. */
async function checkModel(
  context: TestContext,
  definitions: readonly string[],
  optimization: '-O0' | '-O1' = '-O1',
): Promise<string> {
  for (const tool of ['spin', 'gcc']) requireTool(context, tool);
  const cwd = await mkdtemp(join(tmpdir(), 'scanfeed-model-'));
  onTestFinished(() => rm(cwd, { recursive: true, force: true }));
  const run = async (program: string, ...args: readonly string[]) => {
    const { stdout } = await promisify(execFile)(program, args, { cwd });
    return stdout;
  };
  await run('spin', ...definitions.map((definition) => `-D${definition}`), '-a', MODEL);
  await run('gcc', optimization, '-DNP', '-o', 'pan', 'pan.c');
  return run(join(cwd, 'pan'), '-l');
}

/** The first violation of a property in a report: a failed assertion or a cycle. */
const violationIn = (report: string): string | undefined => /^pan:1: (.*) \(at depth/m.exec(report)?.[1];

/** Statements of a process of the model that no execution reached. Its end is not one of them. */
function unreachedIn(process: string, report: string): readonly string[] | undefined {
  const found = new RegExp(`^unreached in ${process}\\n((?:\\t.*\\n)*)`, 'm').exec(report)?.[1];
  return found?.split('\n').filter((line) => line.includes(', state ') && !line.endsWith('"-end-"'));
}

describe('the protocol', () => {
  test.for([
    ['a feed has up to three faults', []],
    ['a feed has up to two faults, and is taken from living processes', ['FAULTS=2', 'EARLY_TAKES=2']],
    ['one of two feeds has a fault', ['FAULTS=1', 'FEEDS=2']],
  ] as const)('keeps its properties when %s', async ([, definitions], context) => {
    const report = await checkModel(context, definitions);
    expect(violationIn(report)).toBeUndefined();
    expect(report).toContain('errors: 0');
    expect(report).not.toMatch(/search not completed|search depth too small/i);
    if (definitions.length > 0) return;
    // A property is worth nothing if a fault that may violate it never occurs.
    for (const process of ['proctype Process', 'proctype Operator', 'init']) {
      expect(unreachedIn(process, report)).toEqual([]);
    }
  });

  test.for([
    ['a take does not raise the epoch', 'NO_EPOCH_RAISE', 'feeds[f].takes=='],
    ['a commit does not compare the holder', 'NO_HOLDER', 'feeds[f].holder=='],
    ['a commit does not compare the position', 'NO_POSITION', 'feeds[f].entries&'],
    ['an unexpired lease allows a commit', 'EXPIRY_AS_FENCE', 'feeds[f].holder=='],
    ['a process keeps the position of lost commits', 'STALE_POSITION', 'non-progress cycle'],
    ['a feed is taken from a living process', 'NO_LIVENESS_CHECK', 'feeds[f].epoch<='],
    ['a process does not take a feed that names it already', 'NO_RETAKE', 'feeds[f].position==2'],
  ] as const)('violates a property when %s', async ([, mistake, property], context) => {
    // Found within a second, which is less than an optimized checker takes to compile.
    expect(violationIn(await checkModel(context, [mistake], '-O0'))).toContain(property);
  });
});
