/**
 * The emulator's own surface, outside the service's interface and without a key.
 *
 * | request | effect |
 * |---|---|
 * | `GET /_emulator/switches`, `PATCH` | read, change any of {@link Switches} |
 * | `POST /_emulator/runs` | `{organization?, count?, ...RunSpec}` or `{organization?, runs: RunSpec[]}`: adds runs |
 * | `POST /_emulator/corrections` | `{organization?, scanId?, count?, redelivery?, ...RunSpec}`: corrects runs (any, without `scanId`) |
 * | `POST /_emulator/entries?organization=` | newline-delimited JSON: each line becomes a feed entry, byte for byte |
 * | `PUT /_emulator/answers/{scanId}?status=&times=` | the body becomes the single-run answer, byte for byte; `DELETE` ends it |
 * | `POST /_emulator/faults`, `DELETE` | adds a fault (see `faults.ts`); removes all |
 * | `POST /_emulator/cursors/invalidate` | `{organization?}`: rejects every cursor issued so far |
 * | `GET /_emulator/requests` | counts of requests by operation |
 * | `GET /_emulator/openapi.json`, `/openapi-control.json` | descriptions of the service, and of these routes |
 *
 * Mistakes are answered with 400 and `{"error": …}` in English.
 */
import type { FastifyInstance, FastifyReply } from 'fastify';
import { z } from 'zod';
import { controlDescription } from './control-description.js';
import {
  answerQuerySchema,
  correctionSchema,
  entriesQuerySchema,
  invalidateSchema,
  runsSchema,
} from './control-schemas.js';
import { type FaultInput, faultSchema } from './faults.js';
import { json } from './refusal.js';
import type { Service } from './service.js';
import { serviceDescription } from './service-description.js';
import type { SwitchesPatch } from './switches.js';

type Defined<T> = { [K in keyof T]: Exclude<T[K], undefined> };
/** Optional members that are undefined are left out, as `exactOptionalPropertyTypes` has it. */
const defined = <T extends object>(value: T) =>
  Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as Defined<T>;

export function addControlRoutes(scope: FastifyInstance, service: Service): void {
  scope.setErrorHandler((error: unknown, _request, reply) => refuse(reply, error));
  scope.get('/switches', () => service.switches);
  scope.patch('/switches', (request) => service.patch(request.body as SwitchesPatch));
  scope.get('/requests', () => ({
    feed: service.requests.count('feed'),
    run: service.requests.count('run'),
    submit: service.requests.count('submit'),
  }));
  scope.post('/runs', (request) => addRuns(service, request.body));
  scope.post('/corrections', (request, reply) => correctRuns(service, request.body, reply));
  scope.post('/faults', (request) => {
    service.faults.add(faultSchema.parse(request.body) as FaultInput);
    return { faults: service.faults.list };
  });
  scope.delete('/faults', () => {
    service.faults.clear();
    return { faults: [] };
  });
  scope.post('/cursors/invalidate', (request) => {
    const body = invalidateSchema.parse(request.body ?? {});
    service.organization(body.organization).cursors.invalidate();
    return {};
  });
  scope.get('/openapi.json', async (_request, reply) => reply.type(json).send(await serviceDescription()));
  scope.get('/openapi-control.json', () => controlDescription());
  scope.register(async (verbatim) => addVerbatimRoutes(verbatim, service));
}

/** Routes whose bodies are taken as bytes. */
function addVerbatimRoutes(scope: FastifyInstance, service: Service): void {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  scope.post('/entries', (request) => {
    const query = entriesQuerySchema.parse(request.query);
    const lines = linesOf(request.body as Buffer | undefined);
    for (const line of lines) service.organization(query.organization).appendVerbatim(line, {}, service.now());
    return { added: lines.length };
  });
  scope.put('/answers/:scanId', (request) => {
    const { scanId } = request.params as { scanId: string };
    const query = answerQuerySchema.parse(request.query);
    service.runScripts.add(scanId, { body: (request.body as Buffer | undefined) ?? '', ...defined(query) });
    return {};
  });
  scope.delete('/answers/:scanId', (request) => {
    service.runScripts.clear((request.params as { scanId: string }).scanId);
    return {};
  });
}

function linesOf(body: Buffer | undefined): Buffer[] {
  const lines: Buffer[] = [];
  for (let start = 0; body !== undefined && start < body.length; ) {
    const newline = body.indexOf(10, start);
    const end = newline === -1 ? body.length : newline;
    if (end > start) lines.push(body.subarray(start, end));
    start = end + 1;
  }
  return lines;
}

function addRuns(service: Service, body: unknown) {
  const request = runsSchema.parse(body ?? {});
  const target = service.organization(request.organization);
  const { organization: _, ...rest } = request;
  const specs = 'runs' in rest ? rest.runs : Array.from({ length: rest.count }, () => withoutCount(rest));
  return { runs: specs.map((spec) => summary(target.append(defined(spec), service.now()))) };
}

function withoutCount<T extends { count: number }>({ count: _, ...rest }: T): Omit<T, 'count'> {
  return rest;
}

function correctRuns(service: Service, body: unknown, reply: FastifyReply) {
  const { organization: name, count: times, scanId, ...change } = correctionSchema.parse(body ?? {});
  const target = service.organization(name);
  const runs = [];
  for (let i = 0; i < times; i++) {
    const nowMs = service.now();
    const version =
      scanId === undefined ? target.correctAny(defined(change), nowMs) : target.correct(scanId, defined(change), nowMs);
    if (version !== null) runs.push(summary(version));
  }
  if (runs.length === 0) return reply.code(404).send({ error: 'there is no such finished run' });
  return { runs };
}

const summary = ({ scanId, revision, status }: { scanId: string; revision: number; status: string }) => ({
  scanId,
  revision,
  status,
});

function refuse(reply: FastifyReply, error: unknown): FastifyReply {
  if (error instanceof z.ZodError) return reply.code(400).send({ error: z.prettifyError(error) });
  if (error instanceof RangeError) return reply.code(400).send({ error: error.message });
  const status = (error as { statusCode?: number }).statusCode ?? 500;
  return reply.code(status).send({ error: error instanceof Error ? error.message : 'unknown error' });
}
