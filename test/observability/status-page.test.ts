import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, type TestContext, test } from 'vitest';
import { captureLeaks } from '../support/canaries/capture-leaks.js';
import { requireTool } from '../support/deployment/tools.js';
import { renderRunbooks } from '../support/runbooks.js';
import { findChromium, launchChromium } from '../support/status-page/browser.js';
import { INVALID_ENTRIES, manyFeeds } from '../support/status-page/many-feeds.js';
import { boxesOf, measureContrasts, overhang, spokenOn, violationsOn } from '../support/status-page/measure.js';
import { serveFeeds, serveStatusPage } from '../support/status-page/serve.js';
import { caughtUp, failing, type Shown, STATES, standingBy } from '../support/status-page/states.js';

beforeAll(renderRunbooks);

let browser: Promise<Browser> | undefined;
const open = new Set<() => Promise<void>>();

afterEach(async () => {
  for (const close of open) await close();
  open.clear();
});
afterAll(async () => (await browser)?.close());

/** Opens the page of the only feed. */
const openPage = (context: TestContext, shown: Shown) => openServed(context, () => serveStatusPage(shown));
/** Opens the list of many feeds. */
const openList = (context: TestContext) => openServed(context, () => serveFeeds(manyFeeds(200), INVALID_ENTRIES));

/** Opens a page in the smallest window of WCAG 2.2 (1.4.10) and collects the errors and requests of the browser. */
async function openServed(context: TestContext, serve: () => ReturnType<typeof serveFeeds>) {
  requireTool(context, 'chromium', findChromium() !== undefined);
  browser ??= launchChromium();
  const served = await serve();
  open.add(served.close);
  const page = await (await browser).newPage({ viewport: { width: 320, height: 640 }, colorScheme: 'light' });
  open.add(() => page.close());
  const errors: string[] = [];
  const requests: string[] = [];
  page.on('console', (message) => errors.push(message.text()));
  page.on('pageerror', (error) => errors.push(String(error)));
  page.on('request', (request) => requests.push(request.url()));
  await page.clock.install();
  await page.goto(served.url);
  captureLeaks('the status page', await page.content());
  return { ...served, page, errors, requests };
}

/** Minimum contrast: 4.5 to 1 for text, 3 to 1 for lines and bars (WCAG 2.2, 1.4.3 and 1.4.11). */
async function tooFaint(page: Page) {
  const { texts, drawn } = await measureContrasts(page);
  expect(texts.length).toBeGreaterThan(25);
  expect(drawn.length).toBeGreaterThan(0);
  return [...texts.filter(({ ratio }) => ratio < 4.5), ...drawn.filter(({ ratio }) => ratio < 3)];
}

test.for(Object.entries(STATES))(
  'the page of a feed %s fits a small window, is legible in both colour schemes, and loads nothing',
  async ([, shown], context) => {
    const { page, url, errors, requests } = await openPage(context, shown());
    expect(await overhang(page)).toBe(0);
    expect(await tooFaint(page)).toEqual([]);
    await page.emulateMedia({ colorScheme: 'dark' });
    expect(await tooFaint(page)).toEqual([]);
    expect(requests).toEqual([url]);
    expect(errors).toEqual([]);
  },
);

test('the list of feeds fits a small and a large window, is legible in both colour schemes, and loads nothing', async (context) => {
  const { page, url, errors, requests } = await openList(context);
  for (const width of [320, 1_280]) {
    await page.setViewportSize({ width, height: 640 });
    expect(await overhang(page)).toBe(0);
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      expect(await tooFaint(page)).toEqual([]);
    }
  }
  expect(requests).toEqual([url]);
  expect(errors).toEqual([]);
});

test('a screen reader reads the list as a table in small and large windows', async (context) => {
  const { page } = await openList(context);
  for (const width of [320, 1_280]) {
    await page.setViewportSize({ width, height: 640 });
    const spoken = await spokenOn(page);
    const named = (role: string) => spoken.filter((node) => node.role === role).map(({ name }) => name);
    expect(named('heading')).toEqual(['Action required for 4 feeds']);
    expect(named('table')).toEqual(['201 feeds, worst first. The first 100 are shown.']);
    expect(named('columnheader')).toEqual(['Feed', 'State', 'Lag']);
    expect(named('row')).toHaveLength(101);
    expect(named('rowheader').slice(0, 4)).toEqual([
      ...['bauverein-nord', 'kanzlei_ost', 'mueller-immobilien.de', 'gutmann-haus'],
    ]);
    expect(named('searchbox')).toEqual(['Search by name']);
  }
});

test('the search finds a feed, whose page leads back to the list', async (context) => {
  const { page, url, errors } = await openList(context);
  await page.getByLabel('Search by name').fill('Gutmann');
  await page.keyboard.press('Enter');
  await page.waitForURL(`${url}?search=Gutmann`);
  await page.getByRole('cell', { name: 'Action required' }).waitFor();
  await page.getByLabel('Search by name').fill('haus');
  await page.getByRole('button', { name: 'Search' }).click();
  await page.waitForURL(`${url}?search=haus`);
  await page.getByRole('table').getByRole('link', { name: 'gutmann-haus' }).click();
  await page.waitForURL(`${url}feeds/gutmann-haus`);
  await page.getByRole('link', { name: 'All feeds' }).click();
  await page.waitForURL(url);
  expect(errors).toEqual([]);
});

describe('axe-core finds nothing wrong with', () => {
  const pages = { ...STATES, 'the list of feeds': null, 'a runbook': null, 'the list of runbooks': null };
  test.for(Object.entries(pages))('%s, on a phone and a desk, light and dark', async ([name, shown], context) => {
    const { page, url, errors } = await (shown === null && name === 'the list of feeds'
      ? openList(context)
      : openPage(context, (shown ?? failing)()));
    if (name.includes('runbook')) {
      await page.goto(`${url}runbooks/${name === 'a runbook' ? 'ScanfeedDatabaseUnavailable.md' : ''}`);
    }
    for (const width of [320, 1_280]) {
      await page.setViewportSize({ width, height: 640 });
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        expect(await violationsOn(page)).toEqual([]);
      }
      expect(await overhang(page)).toBe(0);
    }
    expect(errors).toEqual([]);
  });
});

test('the keyboard leads from an error to its runbook, and back to the status', async (context) => {
  const { page, url, errors } = await openPage(context, failing());
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.waitForURL(`${url}runbooks/ScanfeedAuthenticationFailing.md`);
  await page.getByRole('heading', { name: 'ScanfeedAuthenticationFailing' }).waitFor();
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.waitForURL(url);
  expect(errors).toEqual([]);
});

test('the page follows the colour scheme of the browser', async (context) => {
  const { page } = await openPage(context, caughtUp());
  const ground = () => page.evaluate('getComputedStyle(document.documentElement).backgroundColor');
  expect(await ground()).toBe('rgb(244, 245, 247)');
  await page.emulateMedia({ colorScheme: 'dark' });
  expect(await ground()).toBe('rgb(14, 18, 24)');
});

test('the browser blocks injected styles and scripts', async (context) => {
  const { page, errors } = await openPage(context, caughtUp());
  await page.evaluate(`document.body.insertAdjacentHTML('beforeend', '<p id="foreign" style="color: red">x</p>')`);
  await page.evaluate(
    `document.body.append(Object.assign(document.createElement('script'), { text: 'foreign.id = 1' }))`,
  );
  expect(await page.evaluate('getComputedStyle(foreign).color')).toBe('rgb(26, 33, 44)');
  expect(errors.join()).toMatch(/style.*Content Security Policy.*script.*Content Security Policy/s);
});

test('a screen reader reads the state, the facts, the errors and the captions of the charts', async (context) => {
  const { page } = await openPage(context, failing());
  const spoken = await spokenOn(page);
  const named = (role: string) => spoken.filter((node) => node.role === role).map(({ name }) => name);
  expect(named('heading')).toEqual(['Action required', 'Current errors', 'Lag', 'Runs stored']);
  expect(named('navigation')).toEqual(['Refresh', 'Other views']);
  const text = named('StaticText').join(' ');
  for (const said of [
    'The data is complete up to 24 min 1 s ago.',
    'Data complete as of 14:08:07',
    'Pending results 12',
    'In quarantine 3',
    'correct SCANFEED_API_KEY',
    'for 24 min, since',
    ', 63 failures in a row, next attempt in 12 s',
  ]) {
    expect(text).toContain(said);
  }
  const [lag, runs, ...others] = spoken.filter(({ role }) => role === 'image');
  expect(others).toEqual([]);
  expect(lag).toMatchObject({
    name: 'Lag',
    description: expect.stringContaining('on a logarithmic scale with lines at 1 s, 10 s, 1 min, 10 min, 1 h'),
  });
  expect(lag?.description).toContain('Highest: 23 min 51 s, about 14:30 UTC. 143 attempts failed. Unknown for 29 min');
  expect(runs).toMatchObject({
    name: 'Runs stored',
    description: expect.stringContaining('Runs stored in every 3 minutes'),
  });
  expect(runs?.description).toContain('4,606 runs in the last 2 h 31 min.');
});

test('the charts have bars where values are known, and hatching elsewhere', async (context) => {
  const { page } = await openPage(context, failing());
  const [lag, runs] = [1, 2].map((number) => (kind: string) => boxesOf(page, `figure:nth-of-type(${number}) .${kind}`));
  const lags = (await lag?.('bar')) ?? [];
  const unknown = (await lag?.('unknown')) ?? [];
  expect(lags.length + unknown.length).toBe(51);
  expect(lags.at(-1)?.top).toBeLessThan((lags[0]?.top ?? 0) - 30);
  const stored = (await runs?.('bar')) ?? [];
  const notLed = (await runs?.('unknown')) ?? [];
  expect(stored.length).toBeGreaterThan(20);
  for (const [bars, hatched] of [
    [lags, unknown],
    [stored, notLed],
  ] as const) {
    expect(hatched.length).toBeGreaterThanOrEqual(9); // half an hour asleep
    expect(bars.filter((bar) => hatched.some(({ left, right }) => bar.left < right && bar.right > left))).toEqual([]);
    expect(bars.every(({ top, bottom }) => bottom - top >= 2)).toBe(true);
  }
});

test('a standby shows the lag, and hatching instead of runs', async (context) => {
  const { page } = await openPage(context, standingBy());
  expect((await boxesOf(page, 'figure:nth-of-type(1) .bar')).length).toBeGreaterThan(0);
  expect(await boxesOf(page, 'figure:nth-of-type(2) .bar')).toEqual([]);
  const hatched = await boxesOf(page, 'figure:nth-of-type(2) .unknown');
  const [axis] = await boxesOf(page, 'figure:nth-of-type(2) .grid');
  expect(hatched[0]?.left).toBeCloseTo(axis?.left ?? 0, 0);
  expect(hatched.at(-1)?.right).toBeGreaterThan((axis?.right ?? 0) - 4);
});

describe('the script of the page', () => {
  const headline = (page: Page) => page.getByRole('heading', { level: 1 });
  const gone = (page: Page) => page.getByRole('alert');
  /** Lets the time of the page pass until its next update, and waits for the answer. */
  const tick = async (page: Page) => {
    const answered = page.waitForEvent('requestfinished');
    await page.clock.fastForward(5_000);
    await answered;
  };

  test('updates it without a click, and keeps focus, selection and scroll position', async (context) => {
    const { page, show, errors } = await openPage(context, failing());
    await page.getByRole('link', { name: 'Metrics' }).focus();
    await page.evaluate(`scrollTo(0, 200); getSelection().selectAllChildren(document.querySelector('.more dt'))`);
    show({ ...failing(), report: { ...failing().report, lagSeconds: 4_000 } });
    await tick(page);
    await page.getByText('The data is complete up to 1 h 6 min ago.').waitFor();
    expect(await page.evaluate('[document.activeElement.textContent, String(getSelection()), scrollY]')).toEqual([
      ...['Metrics', 'Initial sync', 200],
    ]);
    show(caughtUp());
    await tick(page);
    await page.getByRole('heading', { name: 'Caught up' }).waitFor();
    expect(await page.title()).toBe('Caught up – scanfeed invoices');
    expect(await page.getByRole('heading', { name: 'Current errors' }).count()).toBe(0);
    expect(errors).toEqual([]);
  });

  test('keeps open details and typed text, and moves the focus with the row of a feed', async (context) => {
    const { page, show } = await openList(context);
    await page.route('**', async (route) => {
      const response = await route.fetch();
      const body = (await response.text()).replace('</main>', '<details><summary>More</summary>x</details></main>');
      await route.fulfill({ response, body });
    });
    await tick(page);
    await page.getByText('More').click();
    await page.getByLabel('Search by name').fill('not sent yet');
    await page.getByRole('table').getByRole('link', { name: 'gutmann-haus' }).focus();
    const worse = { ...failing().report, feed: 'gutmann-haus', lagSeconds: 1_000_000 };
    show(...manyFeeds(200).map((shown) => (shown.report.feed === worse.feed ? { ...shown, report: worse } : shown)));
    await tick(page);
    await page.locator('tbody tr:nth-child(3) a').getByText('gutmann-haus').waitFor();
    expect(await page.locator('details').getAttribute('open')).toBe('');
    expect(await page.getByLabel('Search by name').inputValue()).toBe('not sent yet');
    expect(await page.evaluate('document.activeElement.textContent')).toBe('gutmann-haus');
  });

  test('says that the server is gone, and recovers when it is back', async (context) => {
    const { page, url, close, errors } = await openPage(context, caughtUp());
    expect(await gone(page).count()).toBe(0);
    await close();
    await page.clock.fastForward(5_000);
    await gone(page).getByText('scanfeed does not respond').waitFor();
    expect(await headline(page).textContent()).toBe('Caught up');
    const again = await serveStatusPage(standingBy(), Number(new URL(url).port));
    open.add(again.close);
    await page.clock.fastForward(5_000);
    await page.getByRole('heading', { name: 'Standing by' }).waitFor();
    expect(await gone(page).count()).toBe(0);
    expect(errors.filter((error) => !error.includes('ERR_CONNECTION_REFUSED'))).toEqual([]);
  });

  test('says that the feed is perhaps no longer followed when it was removed', async (context) => {
    const { page, url, show } = await openList(context);
    await page.goto(`${url}feeds/gutmann-haus`);
    show(...manyFeeds(3).filter(({ report }) => report.feed !== 'gutmann-haus'));
    await page.clock.fastForward(5_000);
    await gone(page).waitFor();
    expect(await gone(page).textContent()).toMatch(/^scanfeed does not respond, or no longer follows this feed\./);
  });

  test('asks for nothing while the tab is hidden or the updates are paused, and for one update afterwards', async (context) => {
    const { page, requests } = await openPage(context, caughtUp());
    const setHidden = (hidden: boolean) =>
      page.evaluate(
        `Object.defineProperty(document, 'hidden', { value: ${hidden}, configurable: true }); document.dispatchEvent(new Event('visibilitychange'))`,
      );
    await setHidden(true);
    await page.clock.runFor(60_000);
    expect(requests).toHaveLength(1);
    await setHidden(false);
    await expect.poll(() => requests.length).toBe(2);
    await page.getByRole('button', { name: 'Pause updates' }).click();
    await page.clock.runFor(60_000);
    expect(requests).toHaveLength(2);
    await page.getByRole('button', { name: 'Resume updates' }).click();
    await expect.poll(() => requests.length).toBe(3);
  });
});

test('the page is complete without JavaScript', async (context) => {
  const { url } = await openPage(context, failing());
  const page = await (await (browser as Promise<Browser>)).newPage({ javaScriptEnabled: false });
  open.add(() => page.close());
  await page.goto(url);
  await page.getByText('correct SCANFEED_API_KEY').waitFor();
  expect(await page.getByRole('button').count()).toBe(0);
  await page.getByRole('link', { name: 'Refresh' }).click();
  await page.getByRole('heading', { name: 'Action required' }).waitFor();
});
