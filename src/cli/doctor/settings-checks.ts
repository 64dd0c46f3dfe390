import { describeMistake } from '../../settings/mistakes.js';
import type { Group } from '../../settings/variables.js';
import { type Mistake, readSettings, SettingsError, type SettingsFor } from '../../settings.js';
import { type Finding, failing, ok, warning } from './finding.js';

/** The settings, group by group: one that is wrong does not hide the others. */
export interface GivenSettings {
  readonly service: SettingsFor<'service'>['service'] | null;
  readonly feed: SettingsFor<'feed'>['feed'] | null;
  readonly database: SettingsFor<'database'>['database'] | null;
  readonly mistakes: readonly Mistake[];
  readonly warnings: readonly string[];
}

const OTHERS = ['reconcile', 'pending', 'admin', 'process'] as const satisfies readonly Group[];

export function readGroups(env: NodeJS.ProcessEnv | undefined): GivenSettings {
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
