import type { z } from 'zod';
import { WrongShapeError } from '../errors/body-errors.js';
import { isJsonObject, misfit } from '../wire.js';
import type { HttpAnswer } from './exchange.js';

/** Checks only that a response is an object, and returns it. @throws WrongShapeError */
export function jsonObject(
  answer: Pick<HttpAnswer, 'status' | 'value'>,
  place: string,
): Readonly<Record<string, unknown>> {
  if (!isJsonObject(answer.value)) throw new WrongShapeError(answer.status, place, ['not an object']);
  return answer.value;
}

/** Checks a response against its schema, and returns it. @throws WrongShapeError with fields, never values */
export function checked<S extends z.ZodType>(schema: S, { status, value }: HttpAnswer, place: string): z.infer<S> {
  const { data, error } = schema.safeParse(value);
  if (error === undefined) return data;
  const { in: entry, fields } = misfit(error);
  throw new WrongShapeError(status, entry === null ? place : `entry ${entry} of ${place}`, fields);
}
