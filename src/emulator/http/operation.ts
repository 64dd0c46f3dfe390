import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Fault, Operation } from '../model/fault-types.js';
import type { Organization } from '../model/organization.js';
import { type Answer, ConnectionReset, errorAnswer, Refusal } from '../model/refusal.js';
import type { RequestRecord } from '../model/request-log.js';
import type { Service } from '../service.js';
import { answerInstead, deliver } from './deliver.js';
import type { Query } from './parameters.js';

/** The response of a route, with its details for the request log. */
export interface Outcome extends Partial<Pick<RequestRecord, 'scanId' | 'served' | 'nextCursor' | 'verbatim'>> {
  /** `reset`: the connection is destroyed without a response. */
  readonly answer: Answer | 'reset';
}

export interface Call {
  readonly service: Service;
  readonly organization: Organization;
  readonly request: FastifyRequest;
  readonly query: Query;
  readonly fault: Fault | null;
}

export type Route = (call: Call) => Outcome | Promise<Outcome>;

/**
 * Wraps a route of the service with latency, faults, authentication (interface 5), the error body (interface 2.5) and the
 * request log.
 */
export function operation(service: Service, name: Operation, route: Route) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const { sleep } = service.options;
    const { latencyMs } = service.switches;
    if (latencyMs > 0) await pause(sleep, latencyMs, reply);
    const query = request.query as Query;
    const fault = service.faults.take(name, query.cursor !== undefined);
    const instead = answerInstead(fault);
    const handled = instead === null ? await handle(service, request, query, fault, route) : null;
    const result = handled?.outcome.answer ?? instead;
    const answer = result === 'hang' || result === 'reset' ? null : result;
    const record = {
      operation: name,
      query,
      headers: request.headers,
      scanId: handled?.outcome.scanId ?? (request.params as { scanId?: string }).scanId ?? null,
      organization: handled?.organization?.name ?? null,
      status: answer?.status ?? null,
      served: handled?.outcome.served ?? [],
      nextCursor: handled?.outcome.nextCursor ?? null,
      fault: fault?.kind ?? null,
      verbatim: handled?.outcome.verbatim ?? false,
    };
    service.requests.add(record, answer);
    if (answer === null) {
      reply.hijack();
      if (result === 'reset') request.raw.socket.destroy();
      return reply;
    }
    const date = service.switches.dateHeader ? new Date(service.clock()) : null;
    await deliver(reply, answer, fault, { date, cacheControl: service.switches.cacheControl, sleep });
    return reply;
  };
}

async function handle(service: Service, request: FastifyRequest, query: Query, fault: Fault | null, route: Route) {
  let organization: Organization | null = null;
  try {
    organization = service.authenticate(request.headers.authorization);
    return { organization, outcome: await route({ service, organization, request, query, fault }) };
  } catch (error) {
    if (error instanceof ConnectionReset) return { organization, outcome: { answer: 'reset' } as Outcome };
    const refused = error instanceof Refusal;
    const answer = refused ? errorAnswer(error.status, error.message) : errorAnswer(500, 'Interner Serverfehler.');
    if (!refused) console.error(error);
    return { organization, outcome: { answer, verbatim: refused && !error.described } as Outcome };
  }
}

async function pause(sleep: Service['options']['sleep'], ms: number, reply: FastifyReply): Promise<void> {
  const gone = new AbortController();
  reply.raw.once('close', () => gone.abort());
  await sleep(ms, gone.signal).catch(() => undefined);
}
