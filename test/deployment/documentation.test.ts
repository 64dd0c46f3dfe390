import { readFileSync } from 'node:fs';
import { cp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { packageVersion } from '../../src/core/package.js';
import { readSettings } from '../../src/settings/settings.js';
import {
  CHART,
  OLDEST_KUBERNETES,
  REQUIRED,
  requireHelm,
  runTemplate,
  testFolder,
} from '../support/deployment/chart.js';
import { runTool } from '../support/deployment/tools.js';

const TEXT = readFileSync(new URL('../../docs/deployment.md', import.meta.url), 'utf8');

const blocks = (language: string) =>
  [...TEXT.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map(([, text = '']) => text);

/** The published chart of this version, in whose place the tests use that of the checkout. */
const PUBLISHED = `oci://ghcr.io/scanfeed/charts/scanfeed --version ${packageVersion()}`;

/** Each command of a kind, in one line, without its name. */
const commands = (name: string) =>
  blocks('console')
    .flatMap((block) => block.replaceAll(/\\\n\s+/g, '').split('\n'))
    .filter((line) => line.startsWith(`$ ${name} `))
    .map((line) => line.slice(name.length + 3).trim())
    .map((line) => line.replace(PUBLISHED, 'helm/scanfeed'));

/** What installs and upgrades is rendered instead; what needs a release is left out. */
const helmCommands = commands('helm').filter((command) => !/^(rollback|uninstall) /.test(command));

describe('docs/deployment.md', () => {
  test('names Helm commands that do what they say', async (context) => {
    const helm = requireHelm(context);
    expect(helmCommands.length).toBeGreaterThan(3);
    const folder = await testFolder();
    await cp(join(CHART, '..'), join(folder, 'helm'), { recursive: true });
    await writeFile(join(folder, 'values.yaml'), JSON.stringify(REQUIRED));
    for (const command of helmCommands) {
      const args = command.split(/\s+/).map((arg) => (/^helm\/|^values\.yaml$/.test(arg) ? join(folder, arg) : arg));
      const [verb = '', ...rest] = args;
      const rendered = ['install', 'upgrade', 'template'].includes(verb);
      const run = rendered ? ['template', ...rest, '--kube-version', OLDEST_KUBERNETES] : args;
      const { status, stderr } = await runTool(helm, run);
      expect({ command, status, stderr: status === 0 ? '' : stderr }).toEqual({ command, status: 0, stderr: '' });
    }
    const [sidecar = ''] = blocks('yaml').filter((block) => /^scanfeed:/m.test(block));
    await writeFile(join(folder, 'sidecar.yaml'), sidecar);
    const example = ['template', 'invoices', join(folder, 'helm/example-application')];
    const { status, stdout } = await runTool(helm, [...example, '--values', join(folder, 'sidecar.yaml')]);
    expect({ status, stdout }).toEqual({ status: 0, stdout: expect.stringContaining('restartPolicy: Always') });
  });

  test('shows values that the chart takes', async (context) => {
    const helm = requireHelm(context);
    const values = blocks('yaml').filter(
      (block) => /^(podMonitor|networkPolicy|baseUrl|ca|ingress|httpRoute)/m.test(block) && !/^scanfeed:/m.test(block),
    );
    expect(values).toHaveLength(6);
    for (const block of values) {
      const file = join(await testFolder(), 'values.yaml');
      await writeFile(file, block);
      const required = Object.entries(REQUIRED).flatMap(([name, value]) => [
        '--set-json',
        `${name}=${JSON.stringify(value)}`,
      ]);
      const { status, stderr } = await runTemplate(helm, file, required);
      expect({ block, status, stderr: status === 0 ? '' : stderr }).toEqual({ block, status: 0, stderr: '' });
    }
  });

  test('shows an address of the database that needs nothing else', () => {
    const [address = ''] = blocks('text').filter((block) => block.startsWith('postgres://'));
    const files: Readonly<Record<string, string>> = { '/database': address, '/api-key': 'key' };
    const env = {
      SCANFEED_BASE_URL: 'https://recognition.example/v1',
      SCANFEED_API_KEY_FILE: '/api-key',
      DATABASE_URL_FILE: '/database',
    };
    const { database } = readSettings(env, { readFile: (path) => files[path] ?? '' });
    expect(database).toMatchObject({ connection: { ssl: { rejectUnauthorized: true } } });
  });
});
