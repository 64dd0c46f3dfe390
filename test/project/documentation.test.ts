import type { Command } from 'commander';
import { describe, expect, test } from 'vitest';
import { HELP } from '../../src/observability/metrics/metric-definitions.js';
import { ALL_VARIABLES } from '../../src/settings/variables.js';
import { anchorsOf, commands, filesBelow, loadCommand, projectFiles, readText } from '../support/documents.js';
import { npmScriptsOf, programCallsOf, spansOf, wordsOf } from '../support/page-code.js';

const files = projectFiles();
const pages = files.filter((path) => path.endsWith('.md'));
/** Pages that describe the present state: what an earlier release had stays in the changelog. */
const current = pages.filter((page) => page !== 'CHANGELOG.md');
const isOfCommands = (page: string) => page.startsWith('docs/commands/');
const { scripts } = JSON.parse(readText('package.json')) as { scripts: Record<string, string> };

test.each(pages)('%s links to what exists', (page) => {
  expect(linksOf(readText(page)).filter((link) => !isReachable(page, link))).toEqual([]);
});

/** Targets of a page's links and images, in Markdown and in HTML. */
function linksOf(text: string): readonly string[] {
  const prose = text.replaceAll(/^```.*?^```$/gms, '').replaceAll(/`[^`\n]*`/g, '');
  const links = prose.matchAll(/\]\(([^)\s]+)[^)]*\)|^\[[^\]]+\]: (\S+)|\b(?:href|src|srcset)="([^"\s]+)/gm);
  return [...links].flatMap((found) => found.slice(1).filter((link) => link !== undefined));
}

/** Whether there is the file or folder that a page links to, and the heading in it. Other sites are not asked. */
function isReachable(page: string, link: string): boolean {
  if (/^[a-z]+:/.test(link)) return true;
  const [path = '', anchor] = link.split('#');
  const target = path === '' ? page : decodeURI(new URL(path, `file:///${page}`).pathname.slice(1));
  const isFile = files.includes(target);
  if (anchor !== undefined) return isFile && anchorsOf(readText(target)).has(anchor);
  return isFile || files.some((file) => file.startsWith(`${target.replace(/\/$/, '')}/`));
}

describe.each(current)('%s', (page) => {
  const text = readText(page);

  test('names settings that exist', () => {
    const settings = ALL_VARIABLES.flatMap(({ name, secret }) => (secret ? [name, `${name}_FILE`] : [name]));
    const named = [...text.matchAll(/\bSCANFEED_[A-Z_]+/g)].map(([name]) => name);
    expect(named.filter((name) => !settings.includes(name))).toEqual([]);
  });

  test('shows commands and options that exist', async () => {
    const calls = programCallsOf(text);
    const unknown = await Promise.all(calls.map(async (call) => ({ call, unknown: await unknownOf(call) })));
    expect(unknown.filter((call) => call.unknown.length > 0)).toEqual([]);
  });

  test('runs scripts that package.json has', () => {
    expect(npmScriptsOf(text).filter((script) => !Object.hasOwn(scripts, script))).toEqual([]);
  });

  test('names files and folders that exist', () => {
    const paths = wordsOf(text, /(?:\.ci|\.github|bench|docs|helm|migrations|openapi|src|systemd|test)\/[\w./-]+/);
    const missing = paths.filter((path) => !isReachable('README.md', path));
    const names = spansOf(text).filter((span) => /^[\w-][\w./-]*\.(?:mjs|sql|tpl|ts)$/.test(span));
    const unknown = names.filter((name) => !files.some((file) => `/${file}`.endsWith(`/${name}`)));
    expect([...missing, ...unknown.filter((name) => !name.startsWith('NNNN_'))]).toEqual([]);
  });
});

/** Words of a call that the program does not know. Words in capitals are placeholders. */
async function unknownOf(call: string): Promise<string[]> {
  const [name = '', ...words] = call.split(' ');
  if (name === '--help' || name === '--version' || /^[A-Z…]+$/.test(name)) return [];
  const file = commands.find((command) => command.name === name)?.file;
  if (file === undefined) return [name];
  const command = await loadCommand(file);
  const below = command.commands.find((one: Command) => one.name() === words[0]);
  const flags = [command, ...(below === undefined ? command.commands : [below])].flatMap(({ options }) =>
    options.map(({ long }) => long),
  );
  const unknown = words.filter(
    (word) => word.startsWith('--') && !['--help', ...flags].includes(word.replace(/=.*/, '')),
  );
  const isLost = command.commands.length > 0 && below === undefined && /^[a-z]/.test(words[0] ?? '');
  return isLost ? [...unknown, words[0] ?? ''] : unknown;
}

describe.each([
  ...['README.md', 'docs/README.md', 'docs/demo.md', 'docs/deployment.md', 'docs/emulator.md', 'docs/feed-states.md'],
  ...['docs/log.md', 'docs/retention.md', 'docs/status-page.md', ...current.filter(isOfCommands)],
  ...['docs/reporting.md', 'docs/restoring.md', 'docs/submitting.md', 'docs/troubleshooting.md', 'docs/upgrading.md'],
])('%s', (page) => {
  const text = readText(page);

  test('names metrics that exist', () => {
    const metrics = [...text.matchAll(/\bscanfeed_(?!reporting|reader|changes\b)[a-z_]*[a-z](?![a-z_*])/g)].map(
      ([name]) => name,
    );
    expect(metrics.filter((name) => !Object.hasOwn(HELP, name))).toEqual([]);
  });

  test('shows commands', () => {
    expect(programCallsOf(text)).not.toEqual([]);
  });
});

test('README.md takes five minutes to read', () => {
  const words = readText('README.md')
    .split(/\s+/)
    .filter((word) => word !== '').length;
  expect(words).toBeGreaterThanOrEqual(900);
  expect(words).toBeLessThanOrEqual(1100);
});

test('docs/README.md lists every page of docs/', () => {
  const listed = linksOf(readText('docs/README.md'));
  const below = filesBelow('docs/').flatMap(
    (path) => /^docs\/([\w-]+\.md|[\w-]+\/README\.md|commands\/[\w-]+\.md)$/.exec(path)?.[1] ?? [],
  );
  expect(below.filter((page) => page !== 'README.md' && !listed.includes(page))).toEqual([]);
});

test('docs/comparison.md has the ratios of docs/measurements.md, inverted', () => {
  const figure = /<!-- figure cold-sync -->(.*?)<!-- end/s.exec(readText('docs/measurements.md'))?.[1] ?? '';
  const measured = [...figure.matchAll(/^\| (.+?) \| [\d,]+ \| ([\d.]+) × \|/gm)].filter(
    ([, contestant = '']) => !/^(?:its commit statement|the same, \d pages)/.test(contestant),
  );
  const compared = [...readText('docs/comparison.md').matchAll(/\| ([\d.]+) \| A \|$/gm)].map(([, ratio]) => ratio);
  expect(compared).toHaveLength(5);
  expect(compared.sort()).toEqual(measured.map(([, , times]) => (1 / Number(times)).toFixed(2)).sort());
});

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

  test('are those of the program: the plans in docs/commands/ that have to be confirmed', () => {
    const oneLine = (text: string) => text.replaceAll('\\n', ' ').replaceAll(/\s+/g, ' ');
    const values =
      /\b\d+ (?:entry|result|run|runs|pending results|open entry)\b|\bdefault\b|\bformer\b|\bscanfeed\b|https?:\S+|\d{4}-\d\d-\S+|\S+\/\d+\/\w+|: /g;
    const text = current.filter(isOfCommands).map(readText).join('\n');
    const plans = [...text.matchAll(/^\$ .*\n((?:(?!\$ ).*\n)*?).* \[y\/N\]/gm)].map(([, plan = '']) => oneLine(plan));
    expect(plans).toHaveLength(6);
    const parts = plans.flatMap((plan) => plan.split(values)).map((part) => part.trim());
    expect(parts.filter((part) => /\w{4}/.test(part) && !oneLine(source).includes(part))).toEqual([]);
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
