import { readdir, readFile } from 'node:fs/promises';
import { PACKAGE_FOLDER } from '../../core/package.js';
import { type Answer, textAnswer } from './single-request-server.js';

const FOLDER = new URL('docs/runbooks/', PACKAGE_FOLDER);
/** A name of letters alone cannot lead out of the folder. */
const PAGE = /^\/runbooks\/([A-Za-z]+\.md)?$/;

/** Returns the route for a path below `/runbooks/`, or undefined for other paths. Pages are read at each request. */
export function runbookRoute(path: string): (() => Promise<Answer>) | undefined {
  const [matched, name] = PAGE.exec(path) ?? [];
  if (matched === undefined) return undefined;
  return name === undefined ? listRunbooks : () => readRunbook(name);
}

async function listRunbooks(): Promise<Answer> {
  const names = (await readdir(FOLDER)).filter((name) => name.endsWith('.md')).sort();
  const items = names.map((name) => `<li><a href="${name}">${name.slice(0, -'.md'.length)}</a>`);
  return {
    status: 200,
    contentType: 'text/html; charset=utf-8',
    body: `<!doctype html>\n<html lang="en">\n<title>Runbooks – scanfeed</title>\n<h1>Runbooks</h1>\n<ul>\n${items.join('\n')}\n</ul>\n`,
    headers: { 'content-security-policy': "default-src 'none'; frame-ancestors 'none'" },
  };
}

async function readRunbook(name: string): Promise<Answer> {
  try {
    const body = await readFile(new URL(name, FOLDER), 'utf8');
    return { status: 200, contentType: 'text/plain; charset=utf-8', body };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return textAnswer(404, 'no such runbook; see /runbooks/');
  }
}
