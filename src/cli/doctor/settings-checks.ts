import { describeMistake } from '../../settings/mistakes.js';
import { type Mistake, readSettings, SettingsError, type SettingsFor } from '../../settings/settings.js';
import { GROUPS, type Group } from '../../settings/variables.js';
import type { CommandProcess } from '../context/command-process.js';
import { readFeedSettings } from '../context/feed-settings.js';
import { type Finding, failing, ok, warning } from './finding.js';

/** Groups of settings that no other check uses. */
const OTHER_GROUPS = ['reconcile', 'admin', 'process'] as const satisfies readonly Group[];

/** The settings that other checks use; null if they are wrong. */
export type UsableSettings = { readonly [G in 'service' | 'feed' | 'database']: SettingsFor<G>[G] | null };

export interface CheckedSettings {
  readonly settings: UsableSettings;
  /** The findings about all settings. */
  readonly findings: readonly Finding[];
}

export function validSettings({ service, feed, database, warnings }: SettingsFor<Group>): CheckedSettings {
  return { settings: { service, feed, database }, findings: describe([], warnings) };
}

/**
 * Reads and checks the settings of one feed.
 * @throws CommandFailure if the feeds file does not list it
 */
export async function checkFeedSettings(io: CommandProcess, feed: string | undefined): Promise<CheckedSettings> {
  try {
    return validSettings(await readFeedSettings(io, { feed, need: GROUPS, orAll: true }));
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    return { settings: { service: null, feed: null, database: null }, findings: describe(error.mistakes, []) };
  }
}

/** Reads and checks the settings group by group. A group with a mistake is null and does not hide the others. */
export function checkSettings(env: NodeJS.ProcessEnv | undefined): CheckedSettings {
  const mistakes: Mistake[] = [];
  const warnings = new Set<string>();
  const read = <G extends Group>(group: G): SettingsFor<G>[G] | null => {
    try {
      const settings: SettingsFor<G> = readSettings(env, { need: [group] });
      for (const line of settings.warnings) warnings.add(line);
      return settings[group];
    } catch (error) {
      if (!(error instanceof SettingsError)) throw error;
      mistakes.push(...error.mistakes);
      return null;
    }
  };
  const settings = { service: read('service'), feed: read('feed'), database: read('database') };
  for (const group of OTHER_GROUPS) read(group);
  return { settings, findings: describe(mistakes, [...warnings]) };
}

function describe(mistakes: readonly Mistake[], warnings: readonly string[]): readonly Finding[] {
  const results = [
    ...mistakes.map((mistake) => failing(describeMistake(mistake))),
    ...warnings.map((line) => warning(line)),
  ];
  if (results.length === 0) results.push(ok('all valid'));
  return results.map((result) => ({ check: 'settings', ...result }));
}
