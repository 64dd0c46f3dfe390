import { GROUPS, type Group, VARIABLES, type Variable } from '../../src/settings/variables.js';

const TITLES: Readonly<Record<Group, string>> = {
  service: 'The service',
  feed: 'The feed',
  database: 'The database',
  reconcile: 'Reconciliation',
  admin: 'Metrics, health and status page',
  process: 'The process',
};

/** Renders the sections of docs/settings.md that list the variables. */
export function renderVariables(): string {
  const sections = GROUPS.map((group) => {
    const rows = Object.values<Variable>(VARIABLES[group]).map(renderRow);
    return [
      `## ${TITLES[group]}`,
      '',
      '| variable | default | meaning | allowed |',
      '|---|---|---|---|',
      ...rows,
      '',
    ].join('\n');
  });
  return sections.join('\n');
}

function renderRow({ name, required, secret, default: value, defaultText, meaning, allowed }: Variable): string {
  const shown = defaultText ?? (required ? '**required**' : value === null ? 'none' : `\`${value}\``);
  const cells = [`\`${name}\`${secret ? ' 🔒' : ''}`, shown, meaning, allowed];
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}
