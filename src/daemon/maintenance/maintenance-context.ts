import type { Clock } from '../../core/clock.js';
import type { Outage } from '../../observability/log/failure-log.js';
import type { Logger } from '../../observability/log/logger.js';
import type { Metrics } from '../../observability/metrics/metrics.js';
import type { DatabaseSettings } from '../../settings/settings.js';
import type { StoreConnection } from '../../storage/connection/store-connection.js';
import type { LimitedRun } from '../../sync/waiting/limit-concurrency.js';

/** A task of the maintenance. Yields after each part of its work, so that those of other schemas get their turns. */
export type MaintenanceTask = () => AsyncGenerator<void, void, void>;

export interface MaintenanceContext {
  readonly settings: DatabaseSettings;
  /** Limits the tasks that run at once in all schemas of the process: those of a thousand would fill the memory and the pool. */
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
  /** Called with each change of a logged outage. */
  readonly onOutage?: (outage: Outage) => void;
  readonly nextOutage?: () => number;
}
