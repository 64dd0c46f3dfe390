import { GROUPS, type Group, VARIABLES, type Variable } from '../../src/settings/variables.js';

const TITLES: Readonly<Record<Group, string>> = {
  service: 'The service',
  feed: 'The feed',
  database: 'The database',
  reconcile: 'Reconciliation',
  admin: 'Metrics, health and status page',
  process: 'The process',
};

const INTRODUCTION = `# Settings

scanfeed is configured by environment variables, and for several feeds in one process by [a file](#the-feeds-file) that
overrides some of them. At its start it checks all of them and reports every mistake with the name of the variable; if there
is one, it exits with code 78. An empty variable counts as not set. Unknown variables whose name begins with \`SCANFEED_\`
are ignored; \`scanfeed run\` and \`scanfeed doctor\` warn of them.

- **Durations** are written \`500ms\`, \`30s\`, \`5m\`, \`24h\`, \`7d\`; **sizes** \`64MiB\` (\`B\`, \`KiB\`, \`MiB\`, \`GiB\`).
- **Secrets** (marked 🔒) can be read from a file instead: \`NAME_FILE\` is its path. Trailing line breaks are ignored. Only
  one of the two variables can be set. Secrets are never shown.
- **Files** are read again, so that what they contain can be rotated without a restart. While a file is missing or invalid, the last
  valid value counts, and a warning names its variable. The key is read for each request. The role and the password of the database,
  and the files of \`PGSSLROOTCERT\`, \`PGSSLCERT\` and \`PGSSLKEY\`, are read for each new connection; a new host or database needs a
  restart. Changes of \`HTTPS_PROXY_FILE\` and of the file of \`NODE_EXTRA_CA_CERTS\` are used within two minutes, or at the second poll if
  polls are rarer; from then on, Node's option \`--use-openssl-ca\` no longer applies to the service. \`SCANFEED_FEEDS_FILE\` is read
  within 5 s of a change.
- Each command reads only the groups that it needs: \`migrate\` does not require an API key.

Mistakes are listed by name, with the expected form:

\`\`\`text
scanfeed: 2 settings are wrong:
  SCANFEED_API_KEY is not set; expected: the key alone: visible ASCII characters, no spaces or line breaks; or SCANFEED_API_KEY_FILE, the path of a file that contains it
  DATABASE_URL is not set; expected: postgres://user:password@host:port/database?sslmode=…, special characters as %XX; or DATABASE_URL_FILE; or PGHOST, PGUSER, PGPASSWORD, PGDATABASE
\`\`\`
`;

const CLOSING = `## The feeds file

An integrator that serves many organizations has an API key and a feed for each of them. \`SCANFEED_FEEDS_FILE\` is the path of a
list of these feeds, in YAML or JSON:

\`\`\`yaml
- name: acme
  apiKeyFile: /run/secrets/scanfeed/acme
- name: globex
  apiKeyFile: /run/secrets/scanfeed/globex
  baseUrl: https://eu.recognition.example/v1
  schema: globex
  filters:
    environment: all
    status: [completed]
    documentType: rechnung
  start: live
  markdown: true
  pollInterval: 1m
  readerRole: globex_reader
\`\`\`

Only \`name\` is required. Each key overrides the variable of the same name, such as \`SCANFEED_BASE_URL\` for
\`baseUrl\`, with three exceptions: \`name\` overrides \`SCANFEED_FEED\`, \`schema\` overrides \`SCANFEED_DATABASE_SCHEMA\`, and
\`apiKeyFile\` overrides \`SCANFEED_API_KEY_FILE\` and \`SCANFEED_API_KEY\`. A key that an entry omits is inherited from the
environment, and so is everything else. A key without a value sets the default.

Processes find each other in the schema of \`SCANFEED_DATABASE_SCHEMA\`, even if no feed uses it. It must be the same for all
processes with the same feeds. Aliases and merge keys are not supported. A file has at most 10,000 feeds and 4 MiB.

Feeds of different organizations need a \`schema\` each, because a scan id is unique only within one, and a \`readerRole\` each,
because the members of one can read all schemas that name it. A feed that is new in a schema
is held while the schema contains runs of another base URL, or none of its latest three runs is known to the service with the
feed's key (same id, file name and time of submission). A feed whose key is in another file than that of an earlier feed of the
same schema is held until there is such a run.

The file is read again within 5 s of a change, and used once it reads the same a second later. If it gives a feed another schema,
base URL or key file, it is used once it has not changed for a minute, or after a restart: a file that is being written may lack
the lines that follow. Then the schema is checked as for a new feed. Added feeds start, removed ones stop and are released, changed ones
restart, and the others are not disturbed. A mistake in an entry is reported with its line and the name of its feed, and affects
only that feed: it keeps running with its last valid entry, or does not start. A file that is unreadable, not a list of feeds,
or has an entry without a valid name is rejected as a whole: the last valid one stays in force, and at the start the process
exits with code 78.

## Connecting to PostgreSQL

\`DATABASE_URL\` has libpq's URL form, \`postgres://user:password@host:port/database?parameter=value\`, with one host. The
\`PG*\` variables supply what it does not specify, and also work without it. \`sslmode\` has the same meaning as in libpq:

| \`sslmode\` | encrypted | certificate checked |
|---|---|---|
| \`disable\` | no | – |
| \`allow\`, \`prefer\` (default) | if the server offers it | no |
| \`require\` | yes | no; like \`verify-ca\` if there is a root certificate |
| \`verify-ca\` | yes | its issuer, by \`sslrootcert\` |
| \`verify-full\` | yes | its issuer, by \`sslrootcert\`, and the host's name |

There are two differences from libpq. \`allow\` is treated as \`prefer\`. With both, a connection that the server refuses after TLS was
negotiated is not retried without TLS. Connections through a Unix socket are not encrypted.
\`channel_binding=require\` is treated as \`prefer\`, with a warning. The supported URL parameters are \`host\`, \`port\`, \`user\`,
\`password\`, \`dbname\`, \`sslmode\`, \`sslrootcert\`, \`sslcert\`, \`sslkey\`, \`sslnegotiation\` and \`channel_binding\`. Parameters
for time limits, keep-alive, names and encoding have no effect; any other parameter is a mistake. When a file with a URL
changes, new connections use the new role and password; a new host or database requires a restart.
`;

/** Renders docs/settings.md. */
export function renderSettingsReference(): string {
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
  return [INTRODUCTION, ...sections, CLOSING].join('\n');
}

function renderRow({ name, required, secret, default: value, defaultText, meaning, allowed }: Variable): string {
  const shown = defaultText ?? (required ? '**required**' : value === null ? 'none' : `\`${value}\``);
  const cells = [`\`${name}\`${secret ? ' 🔒' : ''}`, shown, meaning, allowed];
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}
