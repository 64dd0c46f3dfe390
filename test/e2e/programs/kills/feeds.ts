import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defaultApiKey } from '../../../../src/emulator/index.js';

/** A feed of the campaign; each is of an organization of its own. */
export interface Feed {
  readonly name: string;
  readonly apiKey: string;
  /** Name of the organization in the emulator. */
  readonly organization: string;
}

/** One is the feed of the daemon's settings; several are in a file. */
export function feedsOf(count: number): readonly Feed[] {
  if (count === 1) return [{ name: 'default', apiKey: defaultApiKey, organization: 'only' }];
  return Array.from({ length: count }, (_, n) => ({ name: `feed-${n}`, apiKey: `key-${n}`, organization: `org-${n}` }));
}

/** Settings of a daemon that follows the feeds, and what removes their files. */
export async function settingsFor(feeds: readonly Feed[], baseUrl: string) {
  const [first] = feeds;
  const nothing = async () => {};
  if (first !== undefined && feeds.length === 1) {
    return { settings: { SCANFEED_BASE_URL: baseUrl, SCANFEED_API_KEY: first.apiKey }, remove: nothing };
  }
  const folder = await mkdtemp(join(tmpdir(), 'scanfeed-kills-feeds-'));
  const entries = feeds.map(({ name }) => ({ name, baseUrl, apiKeyFile: join(folder, name) }));
  await Promise.all(feeds.map(({ name, apiKey }) => writeFile(join(folder, name), apiKey)));
  const path = join(folder, 'feeds.json');
  await writeFile(path, JSON.stringify(entries));
  return {
    settings: { SCANFEED_FEEDS_FILE: path },
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
