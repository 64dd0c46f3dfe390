import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { type Browser, chromium } from 'playwright-core';

/** The Chromium on the PATH; `.ci/chromium FOLDER` unpacks one to FOLDER/bin. */
export function findChromium(): string | undefined {
  const folders = (process.env.PATH ?? '').split(delimiter);
  return folders.map((folder) => join(folder, 'chromium')).find((path) => existsSync(path));
}

/** Playwright's own browsers are never downloaded. */
export function launchChromium(): Promise<Browser> {
  const executablePath = findChromium();
  if (executablePath === undefined) throw new Error('there is no chromium on the PATH');
  // Containers give little shared memory.
  return chromium.launch({ executablePath, args: ['--disable-dev-shm-usage'] });
}
