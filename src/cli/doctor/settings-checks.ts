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

const CHECK = 'settings';

/** One line for each setting that is wrong, or looks so. */
export function judgeSettings({ mistakes, warnings }: GivenSettings): readonly Finding[] {
  if (mistakes.length + warnings.length === 0) return [ok(CHECK, 'all are valid')];
  return [
    ...mistakes.map((mistake) => failing(CHECK, describeMistake(mistake))),
    ...warnings.map((line) => warning(CHECK, line)),
  ];
}
