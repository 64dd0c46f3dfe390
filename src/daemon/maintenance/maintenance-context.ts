import type { Clock } from '../../core/clock.js';
import type { Outage } from '../../observability/log/failure-log.js';
import type { Logger } from '../../observability/log/logger.js';
import type { Metrics } from '../../observability/metrics/metrics.js';
import type { DatabaseSettings } from '../../settings/settings.js';
import type { StoreConnection } from '../../storage/connection/store-connection.js';
import type { LimitedRun } from '../../sync/waiting/limit-concurrency.js';

/**
 * A maintenance task. Yields after each part of its work, so that tasks of other schemas can run. It can be abandoned there, so it
 * must hold no lock, transaction or other resource while it waits.
 */
export type MaintenanceTask = () => AsyncGenerator<void, void, void>;

export interface MaintenanceContext {
  readonly settings: DatabaseSettings;
  /** Limits how many tasks run at once in all schemas of the process: a thousand would exhaust the memory and the connections. */
  readonly limit: LimitedRun;
  /** Returns the interval between two checks for work, milliseconds. */
  readonly checkIntervalMs: () => number;
  readonly connection: StoreConnection;
  /** Whether this process leads a feed of the schema now. */
  readonly isLeader: () => boolean;
  /** Whether a feed of the schema, or its history, is being read at full speed. */
  readonly isReadingInBulk: () => boolean;
  readonly onPurged: Metrics['purged'];
  readonly logger: Logger;
  readonly clock: Clock;
  readonly onOutage?: (outage: Outage) => void;
}
