import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readSettings } from '../../src/settings/settings.js';
import { testFolder } from '../support/deployment/chart.js';
import { requireTool, runTool } from '../support/deployment/tools.js';
import { readText } from '../support/documents.js';
import { imageEnvironment, imageOptions } from '../support/program/image-options.js';
import { files } from '../support/settings.js';

const UNIT = readText('systemd/scanfeed.service');

/** The values of a key of the unit, with continued lines joined. */
function valuesOf(key: string): string[] {
  const lines = UNIT.replaceAll('\\\n', '').split('\n');
  return lines.filter((line) => line.startsWith(`${key}=`)).map((line) => line.slice(key.length + 1));
}

/** Writes the unit with the Node.js that runs the tests, since systemd-analyze looks for the program. */
async function writeUnit(text = UNIT): Promise<string> {
  const folder = join(await testFolder(), 'system');
  await mkdir(folder, { recursive: true });
  const file = join(folder, 'scanfeed.service');
  await writeFile(file, text.replace('ExecStart=/usr/bin/node ', `ExecStart=${process.execPath} `));
  return file;
}

describe('the unit of systemd', () => {
  test('passes systemd-analyze verify', async (context) => {
    requireTool(context, 'systemd-analyze');
    expect(await runTool('systemd-analyze', ['verify', '--man=no', await writeUnit()])).toEqual({
      status: 0,
      stdout: '',
      stderr: '',
    });
    const misspelt = await writeUnit(UNIT.replace('DynamicUser', 'DynamicUsers'));
    expect((await runTool('systemd-analyze', ['verify', '--man=no', misspelt])).stderr).toContain('DynamicUsers');
  });

  test('is as restricted as a program with a compiler and a network can be', async (context) => {
    requireTool(context, 'systemd-analyze');
    // In tenths, from 0 (restricted) to 100.
    const args = ['security', '--offline=true', '--threshold=15', await writeUnit()];
    const { status, stdout } = await runTool('systemd-analyze', args);
    expect(status, stdout).toBe(0);
  });

  test('gives the daemon settings that exist, and secrets as credentials', async () => {
    const credentials = valuesOf('LoadCredential').map((value) => value.split(':')[0]);
    const environment: Record<string, string> = Object.fromEntries(
      valuesOf('Environment').map((value) => value.split(/=(.*)/s).slice(0, 2)),
    );
    const secrets = Object.fromEntries(
      Object.entries(environment).flatMap(([name, value = '']) =>
        name.endsWith('_FILE') ? [[name, value.replace('%d', '/run/credentials/scanfeed.service')]] : [],
      ),
    );
    expect(Object.values(secrets).map((path) => path.split('/').at(-1))).toEqual(credentials);
    const { warnings, database } = readSettings(
      { ...environment, ...secrets, SCANFEED_BASE_URL: 'https://recognition.example/v1' },
      {
        readFile: files({
          '/run/credentials/scanfeed.service/api-key': 'key-of-the-test',
          '/run/credentials/scanfeed.service/database-url': 'postgres://scanfeed@db.example/invoices',
        }),
      },
    );
    expect(warnings).toEqual([]);
    expect(database.connection).toMatchObject({ host: 'db.example' });
  });

  test('starts Node.js as the image does', () => {
    const [, mebibytes] = /^(\d+)M$/.exec(valuesOf('MemoryMax').join()) ?? [];
    const options = imageOptions(Number(mebibytes));
    expect(options.length).toBeGreaterThan(0);
    const [command = ''] = valuesOf('ExecStart');
    expect(command.split(/\s+/)).toEqual(expect.arrayContaining([...options]));
    const environment = Object.entries(imageEnvironment()).map(([name, value]) => `${name}=${value}`);
    expect(valuesOf('Environment')).toEqual(expect.arrayContaining(environment));
    expect(valuesOf('LimitCORE')).toEqual(['0']);
  });
});
