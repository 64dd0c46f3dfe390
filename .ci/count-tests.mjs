#!/usr/bin/env node
// Runs vitest by the given command and keeps its counts: `count-tests.mjs npm test --`. With --sum, prints those of all runs since
// build/ci/ was removed.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';

const FOLDER = 'build/ci/counts';
const readJson = (file) => JSON.parse(readFileSync(file, 'utf8'));

function run([command, ...args]) {
  mkdirSync(FOLDER, { recursive: true });
  const name = `${FOLDER}/${process.version}-${process.pid}`;
  const report = `${name}.report`;
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
  const { status } = spawnSync(command, [...args, ...reporters], { stdio: 'inherit' });
  const { numPassedTests = 0, numFailedTests = 0 } = existsSync(report) ? readJson(report) : {};
  // A run may fail without a failed test: by a file that cannot be loaded, for instance.
  const failed = status === 0 ? numFailedTests : Math.max(1, numFailedTests);
  writeFileSync(`${name}.json`, JSON.stringify({ passed: numPassedTests, failed }));
  return status ?? 1;
}

function sum() {
  const files = existsSync(FOLDER) ? readdirSync(FOLDER).filter((file) => file.endsWith('.json')) : [];
  const counts = files.map((file) => readJson(`${FOLDER}/${file}`));
  const total = (key) => counts.reduce((number, count) => number + count[key], 0);
  console.log(`${total('passed')} passed, ${total('failed')} failed`);
  return total('failed') === 0 && total('passed') > 0 ? 0 : 1;
}

const args = process.argv.slice(2);
process.exitCode = args[0] === '--sum' ? sum() : run(args);
