import { createHash } from 'node:crypto';
import { escapeHtml, timeElement } from './html.js';

const REFRESH_SECONDS = 30;

/** When and how a page is shown. */
export interface Showing {
  /** Milliseconds since 1970. */
  readonly now: number;
  /**
   * Whether the page reloads itself. Only on request: a reload takes screen readers back to the beginning (WCAG 2.2, 3.2.5).
   */
  readonly refreshed: boolean;
}

export interface Page extends Showing {
  /** Plain text. */
  readonly title: string;
  readonly style: string;
  /** HTML after the name of the program. */
  readonly heading: string;
  /** HTML. */
  readonly main: string;
  readonly links: PageLinks;
}

/** Addresses relative to the page, because a proxy may serve it below another path. */
export interface PageLinks {
  /** The page without and with reloads. */
  readonly here: string;
  readonly refreshing: string;
  /** The folder of `metrics` and the other views, with a slash at its end; empty for that of the page. */
  readonly root: string;
  readonly json: string;
}

/** Returns the content security policy of a page: only its own style sheet is allowed, and no script. */
export function pagePolicy(style: string, formAction: "'none'" | "'self'"): string {
  return `default-src 'none'; style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'; base-uri 'none'; form-action ${formAction}; frame-ancestors 'none'`;
}

/** Renders a page: plain HTML without scripts, for windows of any size and for screen readers. */
export function renderPage({ title, style, heading, main, links, now, refreshed }: Page): string {
  const { root } = links;
  const [here, refreshing, json] = [links.here, links.refreshing, links.json].map(escapeHtml);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
${refreshed ? `<meta http-equiv="refresh" content="${REFRESH_SECONDS}">\n` : ''}<title>${escapeHtml(title)}</title>
<style>${style}</style>
</head>
<body>
<header>
<p><strong>scanfeed</strong> · ${heading}</p>
<p>As of ${timeElement(new Date(now).toISOString())}</p>
</header>
<main>
${main}
</main>
<footer>
<nav aria-label="Refresh">
${
  refreshed
    ? `<a href="${here}">Stop refreshing every ${REFRESH_SECONDS} s</a>`
    : `<a href="${here}">Refresh</a><a href="${refreshing}">Refresh every ${REFRESH_SECONDS} s</a>`
}
</nav>
<nav aria-label="Other views">
<a href="${root}runbooks/">Runbooks</a><a href="${root}metrics">Metrics</a><a href="${json}">Status as JSON</a><a href="${root}livez">Liveness</a><a href="${root}readyz">Readiness</a>
</nav>
</footer>
</body>
</html>
`;
}
