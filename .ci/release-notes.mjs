#!/usr/bin/env node
// Prints the changelog's section of a release: `release-notes.mjs v0.1.0`. Fails if a file has another version than the tag.
import { readFileSync } from 'node:fs';

const read = (path) => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');
const [tag = ''] = process.argv.slice(2);
const version = /^v(\d+\.\d+\.\d+)$/.exec(tag)?.[1];

/** What every release changes, and the version there. */
const versions = {
  'package.json': JSON.parse(read('package.json')).version,
  'package-lock.json': JSON.parse(read('package-lock.json')).version,
  'helm/scanfeed/Chart.yaml, version': /^version: *"?([^"\s]+)/m.exec(read('helm/scanfeed/Chart.yaml'))?.[1],
  'helm/scanfeed/Chart.yaml, appVersion': /^appVersion: *"?([^"\s]+)/m.exec(read('helm/scanfeed/Chart.yaml'))?.[1],
  'compose.yaml': /\/scanfeed:([\d.]+)\}$/m.exec(read('compose.yaml'))?.[1],
  Dockerfile: /^ARG VERSION=(.*)$/m.exec(read('Dockerfile'))?.[1],
};

const problems =
  version === undefined
    ? [`${JSON.stringify(tag)} is not a tag such as v0.1.0`]
    : Object.entries(versions)
        .filter(([, found]) => found !== version)
        .map(([place, found]) => `${place} is ${found}, not ${version}`);
const notes = version === undefined ? undefined : sectionOf(read('CHANGELOG.md'), version);
if (version !== undefined && notes === undefined) {
  problems.push(`CHANGELOG.md has no section "## [${version}] - YYYY-MM-DD"`);
}
if (problems.length > 0) {
  process.stderr.write(`${problems.join('\n')}\n`);
  process.exitCode = 1;
} else {
  process.stdout.write(`${notes}\n`);
}

/** Returns the text below the heading of a version, up to the next one; undefined if there is none with a date. */
function sectionOf(changelog, wanted) {
  const [, ...sections] = changelog.split(/^## /m);
  const section = sections.find((text) =>
    new RegExp(`^\\[${wanted.replaceAll('.', '\\.')}\\] - \\d{4}-\\d{2}-\\d{2}\\n`).test(text),
  );
  return section?.slice(section.indexOf('\n')).trim();
}
