import { type RawBuilder, sql } from 'kysely';
import type { LeaseGrant } from '../../sync/ports/index.js';
import type { Tables } from './schema.js';

/**
 * For a row `process`: it is alive. If it renewed its lease in the future, it is not: the clock was set back, and nobody could take
 * over from it until the clock has caught up.
 */
export const IS_ALIVE = sql`clock_timestamp() BETWEEN process.renewed_at AND process.expires_at`;

/** For a row `feed`: its holder is a living process that can use the schema. */
export function isLed({ processes, schema }: Tables): RawBuilder<boolean> {
  return sql`EXISTS (SELECT FROM ${processes} AS process
    WHERE holder = lease_holder AND ${IS_ALIVE} AND ${schema}::text <> ALL (unusable))`;
}

/**
 * For a row `feed`, as commands see it: the process that leads it; null: none. A holder with another home counts as one, since it cannot be
 * known here whether it is alive.
 */
export function leader(tables: Tables): RawBuilder<string | null> {
  return sql`CASE WHEN lease_home IS DISTINCT FROM ${tables.leaseHome} OR ${isLed(tables)} THEN lease_holder END`;
}

/**
 * For a row `feed`: the time until which an operator accepts that most entries are unusable; null if it has passed, or is further ahead
 * than a command allows: the clock was set back.
 */
export const ACCEPTS_BAD_UNTIL = sql<Date | null>`CASE WHEN feed.accepts_bad_until > clock_timestamp()
  AND feed.accepts_bad_until <= clock_timestamp() + interval '24 hours' THEN feed.accepts_bad_until END`;

/**
 * For a row `feed`: the time as of which its data is complete. It was by the clock of then: if the row has a later time than the present,
 * the clock was set back, and how fresh the data is remains unknown until the end of the feed.
 */
export const STILL_COMPLETE_AS_OF = sql<Date | null>`CASE WHEN GREATEST(feed.last_commit_at, feed.data_complete_as_of) <= clock_timestamp()
      THEN feed.data_complete_as_of END`;

/**
 * Condition on a row of `feeds`: the lease is still the granted one. The holder is compared too, because a database that loses
 * commits may grant the same epoch twice.
 */
export function isHeld({ feed, epoch, holder }: GrantedLease): RawBuilder<boolean> {
  return sql`(name = ${feed} AND lease_epoch = ${epoch} AND COALESCE(lease_holder, '') = ${holder})`;
}

/** The parts that identify a lease: values, or columns of a statement. */
type GrantedLease = { readonly [part in 'feed' | 'epoch' | 'holder']: LeaseGrant[part] | RawBuilder<unknown> };
