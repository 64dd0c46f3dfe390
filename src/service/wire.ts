import { wrongShapeError } from './errors/body-errors.js';

/** A JSON object. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** States of a run (interface 3). The feed lists the last two. */
export type RunStatus = 'processing' | 'completed' | 'failed';

/** The response to a submission (interface 2.4). */
export interface Submission {
  /** Identifies the run in all further queries. */
  readonly scanId: string;
  /** `processing` for a new run; the current status for an idempotent repeat; null if a repeat does not state it. */
  readonly status: RunStatus | null;
  /** URL of the run, for people; null: none was sent. The client builds its own URLs and never follows this one. */
  readonly statusUrl: string | null;
}

/** A response that is JSON. */
interface JsonAnswer {
  readonly status: number;
  readonly value: unknown;
}

/** Checks only that a response is an object, and returns it. @throws ServiceError of the kind `wrong_shape` */
export function jsonObject({ status, value }: JsonAnswer, place: string): JsonObject {
  if (!isJsonObject(value)) throw wrongShapeError(status, place, ['not an object']);
  return value;
}

/**
 * Returns the response to a submission. Only the scan id is required: without the rest the run exists all the same.
 * @throws ServiceError with fields, never values
 */
export function readSubmission(answer: JsonAnswer): Submission {
  const { scanId, status, statusUrl } = jsonObject(answer, 'the response');
  if (!isText(scanId) || scanId === '') throw wrongShapeError(answer.status, 'the response', ['scanId']);
  const stated = isRunStatus(status) ? status : null;
  return {
    scanId,
    status: answer.status === 202 ? (stated ?? 'processing') : stated,
    statusUrl: isText(statusUrl) ? statusUrl : null,
  };
}

/** Returns the message of an error body (interface 2.5), which is German; null if the body does not match the interface. */
export function errorTextOf(body: unknown): string | null {
  return isJsonObject(body) && isText(body.error) ? body.error : null;
}

/** Returns whether a value is the state of a run (interface 3). */
export function isRunStatus(value: unknown): value is RunStatus {
  return value === 'processing' || value === 'completed' || value === 'failed';
}

function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}
