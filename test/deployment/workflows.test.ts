import { existsSync, readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { requireTool, runTool } from '../support/deployment/tools.js';
import { readText } from '../support/documents.js';

const FOLDER = '.github/workflows';
const files = readdirSync(FOLDER).map((name) => `${FOLDER}/${name}`);

interface Job {
  readonly permissions?: Readonly<Record<string, string>>;
  readonly steps?: readonly { readonly run?: string }[];
}

interface Workflow {
  readonly permissions?: Readonly<Record<string, string>>;
  readonly defaults?: unknown;
  readonly jobs: Readonly<Record<string, Job>>;
}

test('actionlint finds nothing wrong', async (context) => {
  requireTool(context, 'actionlint');
  expect(await runTool('actionlint', ['-no-color', ...files])).toEqual({ status: 0, stdout: '', stderr: '' });
  const wrong = readText(`${FOLDER}/ci.yml`).replace('runs-on:', 'run-on:');
  expect((await runTool('actionlint', ['-no-color', '-'], wrong)).status).not.toBe(0);
});

describe.each(files)('%s', (path) => {
  const text = readText(path);
  const { permissions, defaults, jobs } = parse(text) as Workflow;
  const scriptsOf = ({ steps = [] }: Job) => steps.flatMap(({ run }) => run ?? []);
  const scripts = Object.values(jobs).flatMap(scriptsOf);

  test('pins every action by its commit, with the version', () => {
    const used = [...text.matchAll(/uses: (.+)$/gm)].map(([, action = '']) => action);
    expect(used.length).toBeGreaterThan(0);
    expect(used.filter((action) => !/^(\.\/\S+|[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+)$/.test(action))).toEqual([]);
  });

  test('may read the contents; a job has only the further permissions that it needs', () => {
    expect(permissions).toEqual({ contents: 'read' });
    const granted = Object.entries(jobs).flatMap(([job, { permissions: own = {} }]) =>
      Object.entries(own).flatMap(([scope, right]) => (right === 'write' ? [`${job}: ${scope}`] : [])),
    );
    const needed = {
      'ci.yml': [],
      'release.yml': [
        'npm: id-token',
        'image: packages',
        'image: id-token',
        'chart: packages',
        'chart: id-token',
        'release: contents',
      ],
    };
    expect(granted).toEqual(needed[path.slice(FOLDER.length + 1) as keyof typeof needed]);
  });

  test('uses no stored secrets, and puts no event values into scripts', () => {
    expect(text).not.toMatch(/\bsecrets\b\./);
    expect(scripts.length).toBeGreaterThan(0);
    // It comes from whoever opens a pull request or sets a tag: only as a variable of the shell.
    expect(scripts.filter((script) => script.includes('${{'))).toEqual([]);
  });

  test('runs no script of a dependency where it has an identity', () => {
    const withIdentity = Object.values(jobs).filter((job) => job.permissions?.['id-token'] === 'write');
    const installing = withIdentity.flatMap(scriptsOf).filter((script) => /\bnpm (ci|install)\b/.test(script));
    expect(installing.filter((script) => !script.includes('--ignore-scripts'))).toEqual([]);
  });

  test('fails if any command of a pipe fails', () => {
    const hasPipe = scripts.some((script) => script.includes(' | '));
    // The shell that is not named has no pipefail.
    expect(defaults).toEqual(hasPipe ? { run: { shell: 'bash' } } : undefined);
  });

  test('calls scripts that exist', () => {
    const called = [...text.matchAll(/(?<![\w/])\.ci\/[\w.-]+/g)].map(([script]) => script);
    expect(called.length).toBeGreaterThan(0);
    expect(called.filter((script) => !existsSync(script))).toEqual([]);
  });
});
