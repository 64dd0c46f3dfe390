import type { Content, Emulator, RunVersion } from '../../../../src/emulator/index.js';

/** One revision of a run as the feed listed it. Times in milliseconds since 1970. */
export interface ListedVersion {
  readonly scanId: string;
  readonly revision: number;
  readonly deliveredAt: number;
  /** When it was in the feed at the latest; -Infinity: from the start. */
  readonly listedAt: number;
  /** It was placed at an earlier delivery time, where a cursor may have passed. */
  readonly late: boolean;
}

/** Everything that the emulated feed ever listed, with the time at which it did. */
export class Listing {
  readonly #versions = new Map<string, ListedVersion[]>();

  /** Begins with what the feed holds now. */
  constructor(emulator: Emulator) {
    for (const content of emulator.entries()) {
      const version = versionOf(content);
      if (version !== null) this.#add({ ...pick(version), listedAt: Number.NEGATIVE_INFINITY, late: false });
    }
  }

  /** Number of runs. */
  get size(): number {
    return this.#versions.size;
  }

  /** Notes a version that was added to the feed just now. */
  note(version: RunVersion, late: boolean): void {
    this.#add({ ...pick(version), listedAt: Date.now(), late });
  }

  /**
   * Returns the version of each run that the feed held at a time. A version that was replaced
   * in the same millisecond is omitted in favor of the new one.
   */
  *at(time: number): Generator<ListedVersion> {
    for (const versions of this.#versions.values()) {
      const current = versions.findLast(({ listedAt }) => listedAt <= time + 1);
      if (current !== undefined) yield current;
    }
  }

  has(scanId: string, revision: number): boolean {
    return this.#versions.get(scanId)?.some((version) => version.revision === revision) ?? false;
  }

  #add(version: ListedVersion): void {
    const versions = this.#versions.get(version.scanId);
    if (versions === undefined) this.#versions.set(version.scanId, [version]);
    else versions.push(version);
  }
}

const versionOf = (content: Content): RunVersion | null => ('version' in content ? content.version : null);

const pick = ({ scanId, revision, deliveredAt }: RunVersion) => ({ scanId, revision, deliveredAt });
