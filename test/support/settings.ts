import { readSettings, SettingsError } from '../../src/settings/settings.js';

/** The least that `run` needs. */
export const LEAST = {
  SCANFEED_BASE_URL: 'https://service.example/v1',
  SCANFEED_API_KEY: 'key-of-the-test',
  DATABASE_URL: 'postgres://daemon:pass-of-the-test@db.example/app',
};

/** Files by their paths; a missing one fails as on disk. */
export function files(contents: Readonly<Record<string, string>>): (path: string) => string {
  return (path) => {
    const text = contents[path];
    if (text === undefined) throw Object.assign(new Error(`ENOENT: ${path}`), { code: 'ENOENT' });
    return text;
  };
}

/** All settings, of the least and these. */
export function settingsWith(env: NodeJS.ProcessEnv, contents: Readonly<Record<string, string>> = {}) {
  return readSettings({ ...LEAST, ...env }, { readFile: files(contents) });
}

/** What is wrong with the least and these. */
export function mistakesWith(env: NodeJS.ProcessEnv, contents: Readonly<Record<string, string>> = {}): SettingsError {
  try {
    settingsWith(env, contents);
  } catch (error) {
    if (error instanceof SettingsError) return error;
    throw error;
  }
  throw new Error('the settings were accepted');
}
