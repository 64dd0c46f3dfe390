import { readFile } from 'node:fs/promises';
import { PACKAGE_FOLDER } from '../../core/package.js';
import { renderRunbook, STATUS_PAGE_POLICY } from '../status-page/status-page.js';
import { type Answer, htmlAnswer, textAnswer } from './single-request-server.js';

/** The runbooks as HTML, which the build renders (packaging/render-runbooks.mjs). */
const FOLDER = new URL('dist/runbooks/', PACKAGE_FOLDER);
/** A name of letters alone cannot lead out of the folder. */
const PAGE = /^\/runbooks\/(?:([A-Za-z]+)\.md)?$/;
/** Relative, because a proxy may serve the pages below another path. The links of the list need the slash. */
const TO_LIST: Answer = { ...textAnswer(308, 'see /runbooks/'), headers: { location: 'runbooks/' } };

/** Returns the route for `/runbooks` or a path below it, or undefined for other paths. Pages are read at each request. */
export function runbookRoute(path: string): (() => Promise<Answer>) | undefined {
  if (path === '/runbooks') return async () => TO_LIST;
  const [matched, name = 'README'] = PAGE.exec(path) ?? [];
  return matched === undefined ? undefined : () => readRunbook(name);
}

async function readRunbook(name: string): Promise<Answer> {
  try {
    const content = await readFile(new URL(`${name}.html`, FOLDER), 'utf8');
    return htmlAnswer(renderRunbook(name, content), STATUS_PAGE_POLICY);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return textAnswer(404, 'no such runbook; see /runbooks/');
  }
}
