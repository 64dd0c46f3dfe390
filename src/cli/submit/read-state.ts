import { wrongShapeError } from '../../service/errors/body-errors.js';
import { isRunStatus, type RunStatus } from '../../service/wire.js';
import type { FeedService } from '../../sync/ports/index.js';

/** How a run ended (interface 2.1). */
export interface RunState {
  readonly status: RunStatus;
  readonly failureReason: string | null;
  readonly error: string | null;
}

/** Returns the state of a run, whose data is not checked; null while it is processing. */
export async function readState(service: FeedService, scanId: string, signal: AbortSignal): Promise<RunState | null> {
  const { run } = await service.readRun(scanId, { markdown: false }, signal);
  const { status, failureReason, error } = run;
  if (!isRunStatus(status)) throw wrongShapeError(200, 'the run', ['status']);
  if (status === 'processing') return null;
  return { status, failureReason: textOrNull(failureReason), error: textOrNull(error) };
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
