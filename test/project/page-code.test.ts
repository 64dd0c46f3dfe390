import { describe, expect, test } from 'vitest';
import { npmScriptsOf, programCallsOf, wordsOf } from '../support/page-code.js';

const block = (...lines: string[]) => ['```console', ...lines, '```', ''].join('\n');

describe('programCallsOf', () => {
  test.each([
    ['$ scanfeed status --json', 'status --json'],
    ['$ npx scanfeed demo --yes', 'demo --yes'],
    ['$ SCANFEED_LOG_LEVEL=debug scanfeed run', 'run'],
    ['$ node dist/main.js doctor', 'doctor'],
    ['$ scanfeed verify --since 2d \\\n    --json | jq .', 'verify --since 2d --json'],
    ['$ kubectl exec deployment/invoices-scanfeed -- scanfeed doctor', 'doctor'],
    ['$ docker compose exec scanfeed scanfeed status', 'status'],
    ['$ docker run --rm registry.example/documents/scanfeed:0.1.0 emulator --host 0.0.0.0', 'emulator --host 0.0.0.0'],
    ['$ sudo systemd-run --pipe /opt/scanfeed/node_modules/.bin/scanfeed doctor', 'doctor'],
  ])('finds the call in %s', (line, call) => {
    expect(programCallsOf(block(line))).toEqual([call]);
  });

  test.each([
    ['$ npm install scanfeed'],
    ['$ docker build --tag registry.example/documents/scanfeed:0.1.0 .'],
    ['$ helm upgrade invoices helm/scanfeed --values values.yaml'],
    ['$ systemctl enable --now scanfeed'],
    ['scanfeed: 2 of 2 entries still invalid'],
  ])('finds none in %s', (line) => {
    expect(programCallsOf(block(line))).toEqual([]);
  });

  test('finds calls in code spans, and the options in the row of a command', () => {
    expect(programCallsOf('Run `scanfeed resolve\n--all`.\n')).toEqual(['resolve --all']);
    expect(programCallsOf('| `scanfeed sql` | a query; `--json`, `--csv` |\n')).toEqual(['sql', 'sql --json --csv']);
  });
});

test('npmScriptsOf finds scripts, with and without run', () => {
  expect(
    npmScriptsOf(`\`npm start\`${block('$ npm ci && npm run build', '$ npm run --silent bench -- idle')}`),
  ).toEqual(['start', 'build', 'bench']);
});

test('wordsOf finds words that match as a whole, in code alone', () => {
  const page = `.ci/prose, \`.ci/run\` and \`x.ci/run\`\n\n${block('$ .ci/program kills')}`;
  expect(wordsOf(page, /\.ci\/\w+/)).toEqual(['.ci/run', '.ci/program']);
});
