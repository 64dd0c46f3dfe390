import { mkdir } from 'node:fs/promises';
import type { Browser } from 'playwright-core';
import { launchChromium } from '../../support/status-page/browser.js';
import { manyFeeds } from '../../support/status-page/many-feeds.js';
import { serveFeeds, serveStatusPage } from '../../support/status-page/serve.js';
import { caughtUp, readingHistory } from '../../support/status-page/states.js';

/** The pictures of the status page in the documentation: `.ci/program screenshots`. */
const FOLDER = 'docs/images';

const PICTURES: readonly {
  readonly name: string;
  readonly serve: () => ReturnType<typeof serveFeeds>;
  readonly scheme: 'light' | 'dark';
  readonly width: number;
  /** The last thing in the picture: what is beneath says nothing in one. */
  readonly upTo: string;
}[] = [
  { name: 'status-page-light', serve: onePage, scheme: 'light', width: 960, upTo: '.charts' },
  { name: 'status-page-dark', serve: onePage, scheme: 'dark', width: 960, upTo: '.charts' },
  {
    name: 'status-page-phone',
    serve: () => serveStatusPage(readingHistory()),
    scheme: 'light',
    width: 390,
    upTo: '.charts figure:first-child',
  },
  { name: 'feeds-page-light', serve: list, scheme: 'light', width: 960, upTo: 'tbody tr:nth-child(8)' },
  { name: 'feeds-page-dark', serve: list, scheme: 'dark', width: 960, upTo: 'tbody tr:nth-child(8)' },
];

function onePage() {
  return serveStatusPage(caughtUp());
}

function list() {
  return serveFeeds(manyFeeds());
}

async function take(
  browser: Browser,
  { name, serve, scheme, width, upTo }: (typeof PICTURES)[number],
): Promise<string> {
  const { url, close } = await serve();
  const page = await browser.newPage({ viewport: { width, height: 600 }, colorScheme: scheme });
  await page.goto(url);
  const last = await page.locator(upTo).boundingBox();
  const height = Math.ceil((last?.y ?? 0) + (last?.height ?? 0)) + 12;
  const path = `${FOLDER}/${name}.png`;
  const { length } = await page.screenshot({ path, fullPage: true, clip: { x: 0, y: 0, width, height } });
  await page.close();
  await close();
  return `${path} ${(length / 1024).toFixed(0)} KiB`;
}

await mkdir(FOLDER, { recursive: true });
const browser = await launchChromium();
try {
  for (const picture of PICTURES) console.log(await take(browser, picture));
} finally {
  await browser.close();
}
