import { describeMistake } from '../../settings/mistakes.js';
import type { Group } from '../../settings/variables.js';
import { type Mistake, readSettings, SettingsError, type SettingsFor } from '../../settings.js';
import { type Finding, failing, ok, warning } from './finding.js';

type GivenSettings = ReturnType<typeof readGroups>;

const OTHERS = ['reconcile', 'pending', 'admin', 'process'] as const satisfies readonly Group[];

/** Reads the settings group by group, null where one is wrong: it does not hide the others. */
export function readGroups(env: NodeJS.ProcessEnv | undefined) {
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
  const groups = { service: read('service'), feed: read('feed'), database: read('database') };
  for (const group of OTHERS) read(group);
  return { ...groups, mistakes, warnings: [...warnings] };
}

/** One line for each setting that is wrong, or looks so. */
export function judgeSettings({ mistakes, warnings }: GivenSettings): readonly Finding[] {
  const verdicts = [
    ...mistakes.map((mistake) => failing(describeMistake(mistake))),
    ...warnings.map((line) => warning(line)),
  ];
  if (verdicts.length === 0) verdicts.push(ok('all are valid'));
  return verdicts.map((verdict) => ({ check: 'settings', ...verdict }));
}
