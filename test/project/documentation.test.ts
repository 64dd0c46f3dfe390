import type { Command } from 'commander';
import { describe, expect, test } from 'vitest';
import { HELP } from '../../src/observability/metrics/metric-definitions.js';
import { VARIABLES } from '../../src/settings/variables.js';
import { anchorsOf, commands, filesBelow, loadCommand, readText } from '../support/documents.js';

const pages = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'SECURITY.md', ...filesBelow('docs/')].filter((path) =>
  path.endsWith('.md'),
);

describe.each(pages)('%s', (page) => {
  test('links to what is there', () => {
    const prose = readText(page)
      .replaceAll(/^```.*?^```$/gms, '')
      .replaceAll(/`[^`\n]*`/g, '');
    const missing = [...prose.matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, link = '']) => {
      if (/^[a-z]+:/.test(link)) return [];
      const [path = '', anchor] = link.split('#');
      const target = path === '' ? page : new URL(path, `file:///${page}`).pathname.slice(1);
      const text = textOf(target);
      return text === null || (anchor !== undefined && !anchorsOf(text).has(anchor)) ? [link] : [];
    });
    expect(missing).toEqual([]);
  });
});

/** Null where there is no such file or folder. */
function textOf(path: string): string | null {
  try {
    return readText(path);
  } catch (error) {
    return (error as { code?: string }).code === 'EISDIR' ? '' : null;
  }
}

describe.each([
  ...['README.md', 'docs/README.md', 'docs/deployment.md', 'docs/emulator.md', 'docs/operating.md'],
  ...['docs/reporting.md', 'docs/restoring.md', 'docs/submitting.md', 'docs/troubleshooting.md', 'docs/upgrading.md'],
])('%s', (page) => {
  const text = readText(page);

  test('names settings and metrics that exist', () => {
    const settings = Object.values(VARIABLES).map(({ name }) => name as string);
    const named = [...text.matchAll(/\bSCANFEED_[A-Z_]+/g)].map(([name]) => name.replace(/_FILE$/, ''));
    expect(named.filter((name) => !settings.includes(name))).toEqual([]);
    const metrics = [...text.matchAll(/\bscanfeed_(?!reporting|reader|changes\b)[a-z_]*[a-z](?![a-z_*])/g)].map(
      ([name]) => name,
    );
    expect(metrics.filter((name) => !Object.hasOwn(HELP, name))).toEqual([]);
  });

  test('shows commands and options that exist', async () => {
    const calls = [...text.matchAll(/(?:^\$ (?:scanfeed|node dist\/main\.js)|`scanfeed) ([a-z][^`\n]*)/gm)].map(
      ([, call = '']) => call,
    );
    expect(calls.length).toBeGreaterThan(0);
    for (const call of calls) expect({ call, unknown: await unknownOf(call) }).toEqual({ call, unknown: [] });
  });
});

/** Words of a call that the program does not know. */
async function unknownOf(call: string): Promise<string[]> {
  const [name = '', ...words] = call.split(' ');
  const file = commands.find((command) => command.name === name)?.file;
  if (file === undefined) return [name];
  const command = await loadCommand(file);
  const below = command.commands.find((one: Command) => one.name() === words[0]);
  const flags = [...command.options, ...(below?.options ?? [])].map(({ long }) => long);
  const unknown = words.filter((word) => word.startsWith('--') && !['--help', ...flags].includes(word));
  return command.commands.length > 0 && below === undefined && words.length > 0
    ? [...unknown, words[0] ?? '']
    : unknown;
}

describe('the messages that the documentation quotes', () => {
  const source = filesBelow('src/')
    .filter((path) => path.endsWith('.ts'))
    .map((path) => readText(path).replaceAll('\\`', '`'))
    .join('\n');

  /** Parts between what differs from case to case. */
  const partsOf = (message: string) =>
    message
      .split('…')
      .map((part) => part.trim())
      .filter((part) => /\w{2}/.test(part));

  const quoted = (text: string) => [...text.matchAll(/`([^`\n]+)`/g)].map(([, span = '']) => span).filter(isMessage);
  const isMessage = (span: string) => span.includes(' ') && !/^(scanfeed|SELECT) /.test(span) && !span.startsWith('{');

  test.each([
    ['docs/troubleshooting.md', 35],
    ['docs/upgrading.md', 3],
  ])('are those of the program: %s', (page, atLeast) => {
    const messages = quoted(readText(page));
    expect(messages.length).toBeGreaterThanOrEqual(atLeast);
    const gone = messages.filter((message) => partsOf(message).some((part) => !source.includes(part)));
    expect(gone).toEqual([]);
  });
});

describe('CHANGELOG.md', () => {
  const text = readText('CHANGELOG.md');
  const { version } = JSON.parse(readText('package.json')) as { version: string };

  test('has a section of the version with its date, which can be cut out at the headings', () => {
    const [, ...sections] = text.replace(/^\[[^\]]+\]: .*$/gm, '').split(/^(?=## \[)/m);
    const [, released] = sections;
    expect(sections[0]).toMatch(/^## \[Unreleased\]\n/);
    expect(released?.split('\n')[0]).toMatch(new RegExp(`^## \\[${version}\\] - \\d{4}-\\d\\d-\\d\\d$`));
    expect(released?.length).toBeGreaterThan(200);
  });

  test('is of the version that the chart and the image have', () => {
    expect(readText('helm/scanfeed/Chart.yaml')).toMatch(
      new RegExp(`^version: ${version}\nappVersion: ${version}$`, 'm'),
    );
    expect(readText('Dockerfile')).toMatch(new RegExp(`^ARG VERSION=${version}$`, 'm'));
  });
});
