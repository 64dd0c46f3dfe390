/**
 * The emulator's control routes, outside the service's interface and without a key; docs/emulator.md describes them.
 * Invalid requests get 400 and `{"error": …}` in English.
 */
import { readFile } from 'node:fs/promises';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { z } from 'zod';
import { json } from '../model/refusal.js';
import { runSpecSchema } from '../model/run-specs.js';
import type { RunVersion } from '../model/runs.js';
import type { SwitchesPatch } from '../model/switch-types.js';
import type { Service } from '../service.js';
import { SERVICE_DESCRIPTION } from '../service-description.js';

const organization = z.string().optional();
const count = z.int().min(1).max(10_000).default(1);
const runsSchema = z.union([
  z.strictObject({ organization, runs: z.array(runSpecSchema).min(1) }),
  runSpecSchema.extend({ organization, count }),
]);
const correctionSchema = runSpecSchema.extend({
  organization,
  count,
  redelivery: z.enum(['ahead', 'behind', 'in-place']).optional(),
});
const organizationSchema = z.strictObject({ organization });
const answerQuerySchema = z.strictObject({
  status: z.coerce.number().int().min(200).max(599).default(200),
  times: z.coerce.number().int().min(1).optional(),
});

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
  scope.post('/cursors/invalidate', (request) => {
    const body = organizationSchema.parse(request.body ?? {});
    service.organization(body.organization).cursors.invalidate(service.now());
    return {};
  });
  scope.get('/openapi.json', async (_request, reply) => reply.type(json).send(await readFile(SERVICE_DESCRIPTION)));
  scope.register(async (verbatim) => addVerbatimRoutes(verbatim, service));
}

/** Routes whose bodies are taken as bytes. */
function addVerbatimRoutes(scope: FastifyInstance, service: Service): void {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  scope.post('/entries', (request) => {
    const query = organizationSchema.parse(request.query);
    const lines = linesOf(request.body as Buffer | undefined);
    for (const line of lines) service.organization(query.organization).appendVerbatim(line, {}, service.now());
    return { added: lines.length };
  });
  scope.put('/answers/:scanId', (request) => {
    const { scanId } = request.params as { scanId: string };
    const query = answerQuerySchema.parse(request.query);
    service.runScripts.add(scanId, { body: (request.body as Buffer | undefined) ?? '', ...query });
    return {};
  });
  scope.delete('/answers/:scanId', (request) => {
    service.runScripts.clear((request.params as { scanId: string }).scanId);
    return {};
  });
}

/** Returns the lines that are not empty. Latin-1 preserves any bytes. */
function linesOf(body: Buffer | undefined): Buffer[] {
  const lines = body?.toString('latin1').split('\n') ?? [];
  return lines.filter((line) => line !== '').map((line) => Buffer.from(line, 'latin1'));
}

function addRuns(service: Service, body: unknown) {
  const request = runsSchema.parse(body ?? {});
  const target = service.organization(request.organization);
  const specs = 'runs' in request ? request.runs : Array.from({ length: request.count }, () => request);
  return { runs: specs.map((spec) => summary(target.append(spec, service.now()))) };
}

function correctRuns(service: Service, body: unknown, reply: FastifyReply) {
  const { organization: name, count: times, scanId, ...change } = correctionSchema.parse(body ?? {});
  const target = service.organization(name);
  const runs = [];
  for (let i = 0; i < times; i++) {
    const nowMs = service.now();
    const version = scanId === undefined ? target.correctAny(change, nowMs) : target.correct(scanId, change, nowMs);
    if (version !== null) runs.push(summary(version));
  }
  if (runs.length === 0) return reply.code(404).send({ error: 'there is no such finished run' });
  return { runs };
}

function summary({ scanId, revision, status }: RunVersion) {
  return { scanId, revision, status };
}

function refuse(reply: FastifyReply, error: unknown): FastifyReply {
  if (error instanceof z.ZodError) return reply.code(400).send({ error: z.prettifyError(error) });
  if (error instanceof RangeError) return reply.code(400).send({ error: error.message });
  const status = (error as { statusCode?: number }).statusCode ?? 500;
  return reply.code(status).send({ error: error instanceof Error ? error.message : 'unknown error' });
}
