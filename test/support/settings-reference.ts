import { GROUPS, type Group, VARIABLES, type Variable } from '../../src/settings/variables.js';

const TITLES: Readonly<Record<Group, string>> = {
  service: 'The service',
  feed: 'The feed',
  database: 'The database',
  reconcile: 'Reconciliation',
  pending: 'Pending results',
  admin: 'Metrics, health and status page',
  process: 'The process',
};

const INTRODUCTION = `# Settings

scanfeed is set up by environment variables alone. At its start it checks all of them, reports every mistake by name, and
ends with exit code 78 if there is one. An empty variable counts as not set. A name that begins with \`SCANFEED_\` and is
not listed here is ignored with a warning.

- **Durations** are written \`500ms\`, \`30s\`, \`5m\`, \`24h\`, \`7d\`; **sizes** \`64MiB\` (\`B\`, \`KiB\`, \`MiB\`, \`GiB\`).
- **Secrets** (marked 🔒) may stand in a file instead: \`NAME_FILE\` is its path, and line ends at its end do not count.
  Only one of the two may be set. The file is read again when its value is needed, so a rotated key or password is used
  without a restart; while the file is missing or unusable, the last good value counts. Secrets are never shown.
- Commands read the parts they need: \`migrate\` does not ask for an API key.
`;

const CLOSING = `## How PostgreSQL is reached

\`DATABASE_URL\` is libpq's URL form, \`postgres://user:password@host:port/database?parameter=value\`, with one host. What it
leaves open comes from the \`PG*\` variables, which can also stand alone. \`sslmode\` means what it means to libpq:

| \`sslmode\` | encrypted | certificate checked |
|---|---|---|
| \`disable\` | no | – |
| \`allow\`, \`prefer\` (default) | where the server offers it | no |
| \`require\` | yes | no; with a root certificate as \`verify-ca\` |
| \`verify-ca\` | yes | its issuer, by \`sslrootcert\` |
| \`verify-full\` | yes | its issuer, by \`sslrootcert\`, and the host's name |

Two things differ from libpq. \`allow\` is taken as \`prefer\`. And with either of them a connection that the server refuses
after encryption was agreed on is not tried again without. A connection through a Unix socket is not encrypted.
\`channel_binding=require\` is taken as \`prefer\`, with a warning. Of the parameters in a URL, \`host\`, \`port\`, \`user\`,
\`password\`, \`dbname\`, \`sslmode\`, \`sslrootcert\`, \`sslcert\`, \`sslkey\`, \`sslnegotiation\` and \`channel_binding\` count; those
about time limits, keep-alive, names and encoding have no effect; any other is a mistake. When a file with a URL changes,
the new password is used from the next connection on; a new host, role or database needs a restart.
`;

/** The text of docs/settings.md. */
export function renderSettingsReference(): string {
  const variables: readonly Variable[] = Object.values(VARIABLES);
  const sections = GROUPS.map((group) => {
    const rows = variables.filter((variable) => variable.group === group).map(renderRow);
    return [
      `## ${TITLES[group]}`,
      '',
      '| variable | default | meaning | allowed |',
      '|---|---|---|---|',
      ...rows,
      '',
    ].join('\n');
  });
  return [INTRODUCTION, ...sections, CLOSING].join('\n');
}

function renderRow({ name, required, secret, default: value, defaultText, meaning, allowed }: Variable): string {
  const shown = defaultText ?? (required ? '**required**' : value === null ? 'none' : `\`${value}\``);
  const cells = [`\`${name}\`${secret ? ' 🔒' : ''}`, shown, meaning, allowed];
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}
