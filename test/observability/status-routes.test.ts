import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { STATUS_PAGE_POLICY } from '../../src/observability/status-page/status-page.js';
import { captureLeaks } from '../support/canaries/capture-leaks.js';
import { renderRunbooks } from '../support/runbooks.js';
import { INVALID_ENTRIES, manyFeeds } from '../support/status-page/many-feeds.js';
import { serveFeeds, serveStatusPage } from '../support/status-page/serve.js';
import { caughtUp, failing, type Shown, standingBy } from '../support/status-page/states.js';

beforeAll(renderRunbooks);

const open = new Set<() => Promise<void>>();
afterEach(async () => {
  for (const close of open) await close();
  open.clear();
});

type Served = Awaited<ReturnType<typeof serveFeeds>>;

async function use(serving: Promise<Served>) {
  const { url, close } = await serving;
  open.add(close);
  return async (path: string, method = 'GET') => {
    const response = await fetch(`${url}${path}`, { method });
    const body = await response.text();
    captureLeaks(path, body);
    return { status: response.status, headers: response.headers, body };
  };
}

const named = (feed: string, shown: Shown): Shown => ({ ...shown, report: { ...shown.report, feed } });
const linked = (body: string) => [...body.matchAll(/<th scope="row"><a href="([^"]*)"/g)].map(([, href]) => href);
const captionOf = (body: string) => /<caption>(.*?)<\/caption>/.exec(body)?.[1];

describe('a process with many feeds', () => {
  const three = () =>
    serveFeeds([named('a', caughtUp()), named('b', failing()), named('c.test', standingBy())], INVALID_ENTRIES);

  test('lists the feeds worst first, each with a link to its page', async () => {
    const get = await use(three());
    const { status, headers, body } = await get('');
    expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(linked(body)).toEqual(['feeds/b', 'feeds/c.test', 'feeds/a']);
    expect(captionOf(body)).toBe('5 feeds, worst first.');
    expect(body).toContain('<title>Action required for 3 feeds – scanfeed</title>');
    expect(body).toContain(
      '<dt>Worst lag</dt><dd>24 min 1 s <span class="quiet"><a href="feeds/b">b</a><br>unknown for 2',
    );
    for (const path of linked(body)) expect((await get(path ?? '')).status).toBe(200);
    for (const path of ['runbooks/', 'metrics', 'status.json', 'livez', 'readyz']) {
      expect(body).toContain(`href="${path}"`);
      expect((await get(path)).status).not.toBe(404);
    }
  });

  test('shows invalid entries at the top, with their mistakes and whether the feed runs', async () => {
    const get = await use(serveFeeds([named('kanzlei_ost', caughtUp()), named('b', failing())], INVALID_ENTRIES));
    const { body } = await get('');
    const rows = [...body.matchAll(/<tr class="bad">.*<\/tr>/g)].map(([row]) => row.replaceAll(/<[^>]*>/g, ''));
    expect(rows).toEqual([
      'bauverein-nordInvalid entry line 41: start: must be &#34;beginning&#34;, &#34;live&#34; or a time line 43: unknown key &#34;interval&#34; The feed does not run.Unknown',
      'kanzlei_ostInvalid entry line 12: baseUrl: is not an http or https URL The feed runs with its last valid entry. 2 pending results1.2 s',
      expect.stringMatching(
        /^bAction required Reading the feed: the delivery feed .* 12 pending results, 3 in quarantine24 min 1 s$/,
      ),
    ]);
    expect(linked(body)).toEqual(['feeds/kanzlei_ost', 'feeds/b']);
  });

  test('shows the feeds with a text in their names, and counts them', async () => {
    const get = await use(serveFeeds(manyFeeds(50), INVALID_ENTRIES));
    const one = (await get('?search=%20GUTMANN+')).body;
    expect(linked(one)).toEqual(['feeds/gutmann-haus']);
    expect(captionOf(one)).toBe('1 of 51 feeds matches “GUTMANN”, worst first.');
    expect(one).toContain('name="search" value="GUTMANN"');
    expect(one).toContain('<a href="?search=GUTMANN">Refresh</a>');
    const both = (await get('?search=ei')).body;
    expect(captionOf(both)).toBe('4 of 51 feeds match “ei”, worst first.');
    expect((await get('?search=')).body).toEqual((await get('')).body);
  });

  test.each(['"><script>alert(1)</script>', "' onfocus='x", '%', '\u{1F600}', '&lt;'])(
    'escapes the search for %s',
    async (search) => {
      const get = await use(three());
      const { status, body } = await get(`?search=${encodeURIComponent(search)}`);
      const escaped = search.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
      expect(status).toBe(200);
      expect(body).toContain(`0 of 5 feeds match “${escaped}”.`);
      expect(body).toContain(`value="${escaped}"`);
      expect(body).not.toMatch(/<script>|' onfocus/);
    },
  );

  test('survives a search that is not valid UTF-8', async () => {
    const get = await use(three());
    expect((await get('?search=%ff%zz%ed%a0%80')).status).toBe(200);
  });

  test('escapes mistakes and error messages', async () => {
    const report = { ...failing().report, feed: 'a' };
    const currentErrors = report.currentErrors.map((error) => ({ ...error, stage: '<i>', message: '<b>' }));
    const shown = { ...failing(), report: { ...report, currentErrors } };
    const get = await use(serveFeeds([shown], [{ name: 'x<y', mistakes: ['<u>'] }]));
    const { body } = await get('');
    expect(body).not.toMatch(/<[biu]>|x<y/);
    expect(body).toContain('&#60;i&#62;: &#60;b&#62;');
  });

  test('shows the page and the JSON of one feed as a process with one feed does, with a link back', async () => {
    const shown = named('b', failing());
    const [get, single] = [await use(three()), await use(serveStatusPage(shown))];
    expect((await get('feeds/b/status.json')).body).toBe((await single('status.json')).body);
    const [page, only] = [await get('feeds/b'), await single('')];
    const withoutLinks = (body: string) => body.replaceAll(/ href="[^"]*"/g, '');
    expect(withoutLinks(page.body)).toBe(
      withoutLinks(only.body).replace('· feed <strong>', '· <a>All feeds</a> · feed <strong>'),
    );
    const links = [...page.body.matchAll(/<a href="([^"]*)"/g)].map(([, href = '']) => href);
    const absolute = links.map((href) => new URL(href, 'http://x/feeds/b').href.slice('http://x'.length));
    expect(absolute).toEqual([
      ...['/', '/runbooks/ScanfeedAuthenticationFailing.md', '/runbooks/ScanfeedEntriesQuarantined.md', '/feeds/b'],
      ...['/runbooks/', '/metrics', '/feeds/b/status.json', '/livez', '/readyz'],
    ]);
  });

  test('allows forms in the policy of the list alone', async () => {
    const get = await use(three());
    const list = (await get('')).headers.get('content-security-policy');
    expect(list).toMatch(
      /^default-src 'none'; style-src 'sha256-[^']+'; script-src 'sha256-[^']+'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'$/,
    );
    expect((await get('feeds/a')).headers.get('content-security-policy')).toBe(STATUS_PAGE_POLICY);
    expect(STATUS_PAGE_POLICY).toContain("form-action 'none'");
  });

  test('lists the reports of all feeds and the invalid entries as JSON', async () => {
    const get = await use(three());
    const { headers, body } = await get('status.json');
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(JSON.parse(body)).toEqual({
      version: '0.1.0',
      startedAt: '2026-01-01T14:32:08.000Z',
      feeds: [named('a', caughtUp()), named('b', failing()), named('c.test', standingBy())].map(({ report }) => report),
      invalid: INVALID_ENTRIES,
    });
  });

  test('answers 404 with a hint when no feed of that name runs', async () => {
    const get = await use(three());
    for (const path of ['feeds/unknown', 'feeds/A', 'feeds/kanzlei_ost', 'feeds/constructor/status.json']) {
      expect(await get(path)).toMatchObject({ status: 404, body: 'no such feed is running; see / for all feeds\n' });
    }
    for (const path of [
      'feeds',
      'feeds/',
      'feeds/a/',
      'feeds/a/status',
      'feeds/%61',
      'feeds/_a',
      `feeds/${'a'.repeat(64)}`,
    ]) {
      expect(await get(path)).toMatchObject({ status: 404, body: 'not found; see / for the status page\n' });
    }
  });

  test('answers HEAD like GET but without a body, and other methods with 405', async () => {
    const get = await use(three());
    for (const path of ['', '?search=a', 'status.json', 'feeds/a', 'feeds/a/status.json', 'feeds/unknown']) {
      const [whole, head, post] = [await get(path), await get(path, 'HEAD'), await get(path, 'POST')];
      expect([head.status, head.body]).toEqual([whole.status, '']);
      expect(head.headers.get('content-length')).toBe(whole.headers.get('content-length'));
      expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
    }
  });

  test('shows the worst 100 of 1,000 feeds without their charts', async () => {
    const recent = () => {
      throw new Error('the list has no charts');
    };
    const feeds = manyFeeds(1_000).map((shown) => Object.defineProperty({ ...shown }, 'recent', { get: recent }));
    const get = await use(serveFeeds(feeds));
    const { status, body } = await get('');
    expect(status).toBe(200);
    expect(linked(body)).toHaveLength(100);
    expect(linked(body).slice(0, 3)).toEqual(
      ['mueller-immobilien.de', 'gutmann-haus', 'stadtwerke-kiel'].map((name) => `feeds/${name}`),
    );
    expect(captionOf(body)).toBe('1,000 feeds, worst first. The first 100 are shown.');
    expect(body).toContain('<dt>Feeds</dt><dd>1,000</dd>');
    expect(captionOf((await get('?search=organization')).body)).toBe(
      '993 of 1,000 feeds match “organization”, worst first. The first 100 are shown.',
    );
  });

  test('shows an empty list when the file has no feeds', async () => {
    const get = await use(serveFeeds([]));
    const { status, body } = await get('');
    expect(status).toBe(200);
    expect(body).toContain('>No feeds</h1>');
    expect(body).not.toContain('<table>');
    expect(JSON.parse((await get('status.json')).body)).toMatchObject({ feeds: [], invalid: [] });
  });
});

test('a process with one feed has its page and its JSON at the top, and no others', async () => {
  const shown = caughtUp();
  const get = await use(serveStatusPage(shown));
  const { headers, body } = await get('?search=x');
  expect(headers.get('content-security-policy')).toBe(STATUS_PAGE_POLICY);
  expect(body).toContain('<title>Caught up – scanfeed invoices</title>');
  expect(body).not.toMatch(/<form|feeds\//);
  expect((await get('status.json')).body).toBe(`${JSON.stringify(shown.report, null, 2)}\n`);
  for (const path of ['feeds/invoices', 'feeds/invoices/status.json']) expect((await get(path)).status).toBe(404);
});
