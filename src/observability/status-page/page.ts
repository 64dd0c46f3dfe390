import { createHash } from 'node:crypto';
import { escapeHtml, timeElement } from './html.js';
import { LIVE_SCRIPT } from './live-script.js';
import { type Icon, iconOf } from './state.js';
import { STYLE } from './style.js';

/** What all pages have. */
export interface Frame {
  /** Plain text. */
  readonly title: string;
  readonly icon: Icon;
  /** HTML after the name of the program. */
  readonly heading: string;
  /** HTML opposite to it. */
  readonly aside: string;
  /** HTML after the header. */
  readonly body: string;
}

/** A page with the state of feeds. */
export interface Page extends Omit<Frame, 'aside' | 'body'> {
  /** HTML. */
  readonly main: string;
  readonly links: PageLinks;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** Addresses relative to the page, because a proxy may serve it below another path. */
export interface PageLinks {
  /** The page itself. */
  readonly here: string;
  /** The folder of `metrics` and the other views, with a slash at its end; empty for that of the page. */
  readonly root: string;
  readonly json: string;
}

/** Returns the content security policy of a page: only its own style sheet and script are allowed, and requests to its server. */
export function pagePolicy(formAction: "'none'" | "'self'"): string {
  return `default-src 'none'; style-src ${hashOf(STYLE)}; script-src ${hashOf(LIVE_SCRIPT)}; connect-src 'self'; img-src data:; base-uri 'none'; form-action ${formAction}; frame-ancestors 'none'`;
}

function hashOf(content: string): string {
  return `'sha256-${createHash('sha256').update(content).digest('base64')}'`;
}

/** Renders a page with the state of feeds. It is complete without its script, which keeps it current. */
export function renderPage({ main, links, now, ...frame }: Page): string {
  const { root } = links;
  const [here, json] = [links.here, links.json].map(escapeHtml);
  return renderFrame({
    ...frame,
    aside: `As of ${timeElement(new Date(now).toISOString())}`,
    body: `<p id="gone" role="alert" hidden>scanfeed does not respond, or no longer follows this feed. This is the last known state; the page updates when there is a newer one.</p>
<main>
${main}
</main>
<footer>
<nav aria-label="Refresh">
<a href="${here}">Refresh</a><button id="pause" type="button" hidden>Pause updates</button>
</nav>
<nav aria-label="Other views">
<a href="${root}runbooks/">Runbooks</a><a href="${root}metrics">Metrics</a><a href="${json}">Status as JSON</a><a href="${root}livez">Liveness</a><a href="${root}readyz">Readiness</a>
</nav>
</footer>
<script type="module">${LIVE_SCRIPT}</script>`,
  });
}

/** Renders the frame of all pages, for windows of any size and for screen readers. */
export function renderFrame({ title, icon, heading, aside, body }: Frame): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<link rel="icon" href="${iconOf(icon)}">
<style>${STYLE}</style>
</head>
<body>
<header>
<p><strong>scanfeed</strong> · ${heading}</p>
<p>${aside}</p>
</header>
${body}
</body>
</html>
`;
}
