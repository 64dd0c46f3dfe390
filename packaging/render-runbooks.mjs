/**
 * Renders the runbooks as HTML, into the folder from which the admin server serves them in its own style (`dist/runbooks`, or
 * the one given): `node packaging/render-runbooks.mjs [FOLDER]`. Rendering at build time keeps the renderer out of the daemon.
 */
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Marked } from 'marked';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const SOURCE = join(ROOT, 'docs', 'runbooks');
const OUTPUT = resolve(process.argv[2] ?? join(ROOT, 'dist', 'runbooks'));
const { homepage, version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
/** The runbooks of this version in the repository: links to other pages lead there. */
const PUBLISHED = new URL(`blob/v${version}/docs/runbooks/`, homepage.replace('#readme', '/'));

const marked = new Marked({
  renderer: {
    // Wide blocks scroll, also with the keyboard.
    code: ({ text }) => `<pre tabindex="0"><code>${text.replace(/&/g, '&amp;').replace(/</g, '&lt;')}\n</code></pre>\n`,
  },
  walkTokens: (token) => {
    if (token.type === 'link' && token.href.startsWith('../')) token.href = new URL(token.href, PUBLISHED).href;
  },
});

await mkdir(OUTPUT, { recursive: true });
for (const name of await readdir(SOURCE)) {
  const html = await marked.parse(await readFile(join(SOURCE, name), 'utf8'));
  const page = join(OUTPUT, name.replace(/\.md$/, '.html'));
  // A running daemon may read it, and another process may render it too.
  await writeFile(`${page}.${process.pid}`, html);
  await rename(`${page}.${process.pid}`, page);
}
