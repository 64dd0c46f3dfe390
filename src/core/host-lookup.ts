import { type LookupAddress, promises } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { type Clock, systemClock, WAIT_OVER } from './clock.js';

/**
 * Time after which the next address of a name is tried, milliseconds. Node's 250 ms end a handshake over a long line; this allows
 * one lost packet, which is sent again after 1 s.
 */
export const ATTEMPT_TIMEOUT_MS = 2_000;

/** Maximum time to wait for the addresses of a name, milliseconds. Longer than one lost packet takes. */
const DEADLINE_MS = 6_000;

/** Returns the addresses of a name. */
type Query = (name: string, hints: number | undefined) => Promise<readonly LookupAddress[]>;

/** What is known about a name. */
interface Name {
  /** The last addresses, used while a lookup is slow or fails temporarily. */
  addresses: readonly LookupAddress[] | null;
  /** The error of the last lookup, or of the running one, which has no response yet. */
  failure: Error;
  /** Whether the last response took longer than the deadline. */
  isSlow: boolean;
  running: Promise<void> | null;
}

class LookupTimeout extends Error {
  readonly code = 'EAI_AGAIN';
}

const queryHost: Query = (name, hints) => promises.lookup(name, { all: true, ...(hints !== undefined && { hints }) });

/**
 * Creates a function that looks up names for sockets. The operating system answers only two lookups of a process at a time (half of
 * UV_THREADPOOL_SIZE), and a name whose servers are silent takes a minute. So there is one lookup at a time for each name, and
 * one for all names that were slow. Who waits longer than the deadline gets the last addresses or EAI_AGAIN.
 */
export function createLookup(query: Query = queryHost, clock: Clock = systemClock): LookupFunction {
  const names = new Map<string, Name>();
  let slowLookups = Promise.resolve();
  const refresh = async (host: string, name: Name, hints: number | undefined) => {
    const answered = new AbortController();
    void clock.sleep(DEADLINE_MS, answered.signal).then(() => {
      name.isSlow ||= !answered.signal.aborted;
    });
    try {
      name.addresses = await query(host, hints);
      name.isSlow = false;
    } catch (error) {
      name.failure = error as Error;
      if ((error as NodeJS.ErrnoException).code !== 'EAI_AGAIN')
        Object.assign(name, { addresses: null, isSlow: false });
    } finally {
      answered.abort(WAIT_OVER);
      name.running = null;
    }
  };
  const startLookup = (host: string, name: Name, hints: number | undefined) => {
    name.failure = new LookupTimeout(`no address within ${DEADLINE_MS / 1000} s`);
    if (!name.isSlow) return refresh(host, name, hints);
    slowLookups = slowLookups.then(() => refresh(host, name, hints));
    return slowLookups;
  };
  const addressesOf = async (host: string, hints: number | undefined): Promise<readonly LookupAddress[]> => {
    const name = names.get(host) ?? { addresses: null, failure: new Error(), isSlow: false, running: null };
    names.set(host, name);
    name.running ??= startLookup(host, name, hints);
    if (!name.isSlow || name.addresses === null) {
      const ended = new AbortController();
      await Promise.race([name.running, clock.sleep(DEADLINE_MS, ended.signal)]);
      ended.abort(WAIT_OVER);
    }
    if (name.addresses === null) throw name.failure;
    return name.addresses;
  };
  return (host, options, callback) => {
    void addressesOf(host, options.hints).then(
      (addresses) => {
        const [first] = addresses;
        if (options.all) callback(null, [...addresses]);
        else callback(null, first?.address ?? '', first?.family);
      },
      (error) => callback(error, []),
    );
  };
}

/** Looks up names for all sockets of the process: the operating system counts the lookups of the process. */
export const lookupHost = createLookup();
