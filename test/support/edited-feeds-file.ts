import { rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { seededRandom } from './virtual-clock.js';

export const ORGANIZATIONS = ['north', 'south', 'east', 'west', 'centre', 'coast'] as const;
export type Organization = (typeof ORGANIZATIONS)[number];
/** Each organization has several keys, in files of these names. The last one does not exist at first. */
export const KEYS = ['one', 'two', 'late'] as const;
/** Often enough to poll while a test waits, and so rarely that there is only one poll after a start. */
const POLL_INTERVALS = ['5s', '1h'] as const;

interface Settings {
  readonly key: (typeof KEYS)[number];
  readonly pollInterval: (typeof POLL_INTERVALS)[number];
}

interface Entry extends Settings {
  readonly organization: Organization;
  readonly name: string;
  /** A line that is wrong; empty if there is none. */
  readonly broken: string;
}

interface Running extends Settings {
  readonly organization: Organization;
}

interface Place {
  readonly path: string;
  /** Folder of the keys, in files such as `north-one`. */
  readonly folder: string;
  readonly writeKey: (file: string) => Promise<void>;
}

/** A feeds file that is edited at random, and what a daemon that has read each version runs. */
export function editedFeedsFile({ path, folder, writeKey }: Place, seed: number) {
  const random = seededRandom(seed);
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
  const running = new Map<string, Running>();
  const lateKeys = new Set<Organization>();
  const first = (organization: Organization): Entry => ({
    name: `${organization}-1`,
    organization,
    key: 'one',
    pollInterval: '5s',
    broken: '',
  });
  let entries = ORGANIZATIONS.map(first);
  let invalid: readonly string[] = [];
  let edits = 0;

  const isValid = ({ broken, key, organization }: Entry) =>
    broken === '' && (key !== 'late' || lateKeys.has(organization));
  /** What a daemon runs once it has read the entries, a version without mistakes in the whole file. */
  const follow = () => {
    const listed = new Set(entries.map(({ name }) => name));
    for (const name of [...running.keys()]) if (!listed.has(name)) running.delete(name);
    for (const { name, organization, key, pollInterval } of entries.filter(isValid))
      running.set(name, { organization, key, pollInterval });
    invalid = entries.filter((entry) => !isValid(entry)).map(({ name }) => name);
  };
  const textOf = ({ name, organization, key, pollInterval, broken }: Entry) =>
    `- name: ${name}\n  apiKeyFile: ${join(folder, `${organization}-${key}`)}\n  pollInterval: ${pollInterval}\n${broken}`;
  /** Replaces the file as a whole. Each version differs from the one before. */
  const replace = async (text: string) => {
    await writeFile(`${path}.new`, `${text}# edit ${edits}\n`);
    await rename(`${path}.new`, path);
  };
  const write = async () => {
    await replace(entries.length === 0 ? '[]\n' : entries.map(textOf).join(''));
    follow();
  };
  /** Changes one of these entries, if there is any. */
  const change = (which: (entry: Entry) => boolean, how: (entry: Entry) => Partial<Entry>) => {
    const chosen = pick(entries.filter(which));
    entries = entries.map((entry) => (entry === chosen ? { ...entry, ...how(entry) } : entry));
  };
  const kinds = {
    add: () => {
      const free = ORGANIZATIONS.filter((organization) =>
        entries.every((entry) => entry.organization !== organization),
      );
      if (free.length === 0) return;
      const organization = pick(free);
      const settings = { key: pick(KEYS), pollInterval: pick(POLL_INTERVALS) };
      entries = [...entries, { name: `${organization}-1`, organization, ...settings, broken: '' }];
    },
    remove: () => {
      const chosen = pick(entries);
      entries = entries.filter((entry) => entry !== chosen);
    },
    'change the poll interval': () =>
      change(isValid, ({ pollInterval }) => ({ pollInterval: pollInterval === '5s' ? '1h' : '5s' })),
    'change the key': () => change(isValid, ({ key }) => ({ key: pick(KEYS.filter((other) => other !== key)) })),
    break: () =>
      change(isValid, () => ({ broken: pick(['  colour: red\n', '  pollInterval: 5s\n', '  markdown: perhaps\n']) })),
    repair: () =>
      change(
        (entry) => !isValid(entry),
        () => ({ broken: '', key: 'one' }),
      ),
    rename: () => change(isValid, ({ organization }) => ({ name: `${organization}-${pick([1, 2, 3])}` })),
    move: () => {
      entries = [...entries].reverse();
      entries = [...entries.slice(1), ...entries.slice(0, 1)];
    },
    'make or delete a key': async () => {
      const organization = pick(ORGANIZATIONS);
      const file = `${organization}-late`;
      if (lateKeys.delete(organization)) return await rm(join(folder, file));
      lateKeys.add(organization);
      await writeKey(file);
    },
  };
  /** Versions that cannot be used as a whole. */
  const unusable: readonly (() => Promise<void>)[] = [
    () => replace('- name: [north\n'),
    () => replace('feeds: none\n'),
    () => replace('- pollInterval: 5s\n'),
    () => writeFile(path, ''),
    () => rm(path, { force: true }),
  ];
  type Kind = keyof typeof kinds | 'make the file unusable';
  const all: readonly Kind[] = [
    'add',
    'repair',
    'make the file unusable',
    ...(Object.keys(kinds) as (keyof typeof kinds)[]),
  ];
  let left: Kind[] = [];
  /** Returns each kind equally often, in random order. */
  const nextKind = (): Kind => {
    if (left.length === 0) left = [...all];
    return left.splice(Math.floor(random() * left.length), 1)[0] as Kind;
  };

  return {
    running,
    invalid: () => invalid,
    write,
    /** Makes a change, and returns what it was. */
    edit: async (): Promise<string> => {
      edits += 1;
      const kind = nextKind();
      if (kind === 'make the file unusable') await pick(unusable)();
      else {
        await kinds[kind]();
        await write();
      }
      return kind;
    },
  };
}
