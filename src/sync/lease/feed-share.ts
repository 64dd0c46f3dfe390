/** Part of its surplus feeds that a process gives back in one round, since each pauses while it changes processes. */
const GIVEN_BACK = 0.1;

/**
 * Decides which feeds a process leads, so that processes that follow the same feeds share them evenly. Shares count feeds that it
 * leads, even failing ones: a feed that fails stays where it is. All times are monotonic, milliseconds.
 */
export class FeedShare {
  readonly #followed = new Set<string>();
  /** Feeds that the process leads or is taking, in the order in which it took them. */
  readonly #led = new Set<string>();
  readonly #freeSince = new Map<string, number>();
  /** Numbers of feeds that the other living processes follow. */
  #others: ReadonlyMap<string, number> = new Map();
  /** Those that it took beyond its share because no other process did; they are not surplus. */
  readonly #beyondShare = new Set<string>();
  #surplus = new Set<string>();
  #decidedAt = Number.NEGATIVE_INFINITY;

  /** @param roundMs time between two decisions about the surplus */
  constructor(
    private readonly ttlMs: number,
    private readonly roundMs: number,
  ) {}

  follow(feed: string): void {
    this.#followed.add(feed);
  }

  unfollow(feed: string): void {
    this.#followed.delete(feed);
    this.#freeSince.delete(feed);
  }

  /** Returns the number of feeds that the process follows. */
  followed(): number {
    return this.#followed.size;
  }

  /** Sets the living processes with their numbers of feeds, this one included. Returns whether other ones live than before. */
  setProcesses(living: ReadonlyMap<string, number>, holder: string): boolean {
    const others = new Map([...living].filter(([process]) => process !== holder));
    const isSame = others.size === this.#others.size && [...others.keys()].every((other) => this.#others.has(other));
    this.#others = others;
    if (isSame) return false;
    // The shares have changed, so other processes can now take feeds that they left free before.
    this.#freeSince.clear();
    this.#beyondShare.clear();
    this.#surplus.clear();
    return true;
  }

  /** Records whether a feed was free when it was read. It may have been unfollowed meanwhile. */
  recordRead(feed: string, isFree: boolean, now: number): void {
    if (!isFree || !this.#followed.has(feed)) this.#freeSince.delete(feed);
    else if (!this.#freeSince.has(feed)) this.#freeSince.set(feed, now);
  }

  /** Returns for how long a feed has been free while the set of processes was unchanged; 0 if it is not free. */
  freeForMs(feed: string, now: number): number {
    return now - (this.#freeSince.get(feed) ?? now);
  }

  /**
   * Reserves a feed, which counts until it is released. Returns false if the process is not allowed to take it. Beyond its share, it
   * can take only a feed that was free for the time to live while the set of processes was unchanged: no other process follows it.
   * @param othersFrom from when on this process, and perhaps all others, can take feeds from others
   */
  reserve(feed: string, now: number, othersFrom = Number.NEGATIVE_INFINITY): boolean {
    if (this.#led.size >= this.#limit()) {
      if (Math.min(this.freeForMs(feed, now), now - othersFrom) < this.ttlMs) return false;
      this.#beyondShare.add(feed);
    }
    this.#led.add(feed);
    return true;
  }

  /** Reserves a feed, even beyond the share, that already belongs to this process. */
  reserveOwn(feed: string): void {
    this.#led.add(feed);
  }

  release(feed: string): void {
    this.#led.delete(feed);
    this.#beyondShare.delete(feed);
    this.#surplus.delete(feed);
  }

  /** Returns whether the process leads a feed, or is taking it. */
  leads(feed: string): boolean {
    return this.#led.has(feed);
  }

  /** Returns whether the process leads all of these feeds, or is taking them. False if there are none yet. */
  leadsAll(feeds: ReadonlySet<string> = this.#followed): boolean {
    return feeds.size > 0 && [...feeds].every((feed) => this.leads(feed));
  }

  /** Returns whether the process leads more than its share, and gives feeds back. */
  exceedsShare(): boolean {
    return this.#led.size > this.#limit();
  }

  /** Returns whether to give a feed back so that another process can take it: a feed beyond the share that was taken last. */
  isSurplus(feed: string, now: number): boolean {
    if (now - this.#decidedAt >= this.roundMs) {
      const number = Math.ceil(Math.max(0, this.#led.size - this.#limit()) * GIVEN_BACK);
      this.#surplus = new Set([...this.#led].slice(this.#led.size - number));
      this.#decidedAt = now;
    }
    return this.#surplus.has(feed);
  }

  /** Returns how many feeds the process leads: its share, and feeds that no other process took. A process that follows fewer counts less. */
  #limit(): number {
    const feeds = this.#followed.size;
    const processes = [...this.#others.values()].reduce((sum, other) => sum + Math.min(1, other / feeds), 1);
    return Math.ceil(feeds / processes) + this.#beyondShare.size;
  }
}
