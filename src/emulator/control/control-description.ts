import { z } from 'zod';
import { faultSchema } from '../model/faults.js';
import { switchesSchema } from '../model/switches.js';
import {
  answerQuerySchema,
  correctionSchema,
  entriesQuerySchema,
  invalidateSchema,
  runsSchema,
} from './control-schemas.js';

type Json = Readonly<Record<string, unknown>>;

interface Route {
  readonly method: 'get' | 'post' | 'patch' | 'put' | 'delete';
  readonly path: string;
  readonly id: string;
  readonly summary: string;
  /** Content type and schema of the body. */
  readonly body?: readonly [type: string, schema: Json];
  readonly query?: z.ZodObject;
  readonly answer: Json;
  readonly notFound?: string;
}

const ref = (name: string): Json => ({ $ref: `#/components/schemas/${name}` });
const json = 'application/json';
const faults: Json = {
  type: 'object',
  required: ['faults'],
  properties: { faults: { type: 'array', items: ref('Fault') } },
};
const nothing: Json = { type: 'object', maxProperties: 0 };
const described: Json = { type: 'object', required: ['openapi', 'info', 'paths'] };

const routes: readonly Route[] = [
  { method: 'get', path: '/switches', id: 'readSwitches', summary: 'All switches', answer: ref('Switches') },
  {
    ...{ method: 'patch', path: '/switches', id: 'changeSwitches', summary: 'Change the given switches' },
    ...{ body: [json, ref('SwitchesPatch')], answer: ref('Switches') },
  },
  {
    ...{ method: 'post', path: '/runs', id: 'addRuns', summary: 'Add finished runs; omitted fields are generated' },
    ...{ body: [json, ref('Runs')], answer: ref('Changed') },
  },
  {
    ...{ method: 'post', path: '/corrections', id: 'correctRuns' },
    summary: 'Raise the revision of a finished run, or of `count` of them without `scanId`',
    ...{ body: [json, ref('Correction')], answer: ref('Changed'), notFound: 'There is no such finished run.' },
  },
  {
    ...{ method: 'post', path: '/entries', id: 'addEntries' },
    summary: 'Each line becomes a feed entry, byte for byte; it need not be JSON',
    ...{ body: ['application/x-ndjson', { type: 'string' }], query: entriesQuerySchema },
    answer: { type: 'object', required: ['added'], properties: { added: { type: 'integer', minimum: 0 } } },
  },
  {
    ...{ method: 'put', path: '/answers/{scanId}', id: 'scriptAnswer' },
    summary: 'The body becomes the single-run answer, byte for byte; several are used in order',
    ...{ body: [json, {}], query: answerQuerySchema, answer: nothing },
  },
  {
    method: 'delete',
    path: '/answers/{scanId}',
    id: 'endAnswers',
    summary: 'Remove scripted answers',
    answer: nothing,
  },
  {
    ...{ method: 'post', path: '/faults', id: 'addFault', summary: 'Add a fault after the active ones' },
    ...{ body: [json, ref('Fault')], answer: faults },
  },
  { method: 'delete', path: '/faults', id: 'clearFaults', summary: 'Remove all faults', answer: faults },
  {
    ...{ method: 'post', path: '/cursors/invalidate', id: 'invalidateCursors' },
    ...{ summary: 'Reject every cursor issued so far', body: [json, ref('Invalidation')], answer: nothing },
  },
  { method: 'get', path: '/requests', id: 'countRequests', summary: 'Requests so far', answer: ref('Counts') },
  { method: 'get', path: '/openapi.json', id: 'describeService', summary: 'The service', answer: described },
  { method: 'get', path: '/openapi-control.json', id: 'describeControl', summary: 'These routes', answer: described },
];

/** Returns the OpenAPI description of the control routes, generated from the schemas that check their input. */
export function controlDescription(): Json {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) paths[route.path] = { ...paths[route.path], [route.method]: operationOf(route) };
  return {
    openapi: '3.1.1',
    info: {
      title: 'Control routes of the emulated Document Recognition Service',
      version: 'v1',
      description: 'Control of the emulator by scripts. Not part of the service; no key is needed.',
    },
    servers: [{ url: '/_emulator' }],
    paths,
    components: { schemas: schemas() },
  };
}

function operationOf({ id, summary, body, query, path, answer, notFound }: Route): Json {
  const parameters = [...(path.includes('{scanId}') ? [scanId] : []), ...(query === undefined ? [] : inQuery(query))];
  return {
    operationId: id,
    summary,
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined ? {} : { requestBody: { content: { [body[0]]: { schema: body[1] } } } }),
    responses: {
      200: { description: 'Done.', content: { [json]: { schema: answer } } },
      ...(body === undefined && query === undefined ? {} : { 400: refused('The input is invalid.') }),
      ...(notFound === undefined ? {} : { 404: refused(notFound) }),
    },
  };
}

const refused = (description: string): Json => ({ description, content: { [json]: { schema: ref('Mistake') } } });
const scanId = { name: 'scanId', in: 'path', required: true, schema: { type: 'string' } };

function inQuery(query: z.ZodObject): Json[] {
  const { properties = {} } = asJsonSchema(query);
  return Object.entries(properties).map(([name, schema]) => ({ name, in: 'query', schema }));
}

function schemas(): Json {
  const { properties = {}, ...switches } = asJsonSchema(switchesSchema);
  Object.assign(properties.faults as object, { items: ref('Fault') });
  const changed = z.object({
    scanId: z.string(),
    revision: z.int().min(1),
    status: z.enum(['completed', 'failed']),
  });
  const count = z.int().min(0);
  return {
    Switches: { ...switches, properties, required: Object.keys(properties) },
    SwitchesPatch: { ...switches, properties },
    Fault: asJsonSchema(faultSchema),
    Runs: asJsonSchema(runsSchema),
    Correction: asJsonSchema(correctionSchema),
    Invalidation: asJsonSchema(invalidateSchema),
    Changed: asJsonSchema(z.object({ runs: z.array(changed) })),
    Counts: asJsonSchema(z.object({ feed: count, run: count, submit: count })),
    Mistake: asJsonSchema(z.object({ error: z.string() })),
  };
}

/** Returns the JSON Schema of the input, before defaults are applied. */
function asJsonSchema(schema: z.ZodType): { readonly properties?: Readonly<Record<string, unknown>> } {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input' });
  return rest as { properties?: Record<string, unknown> };
}
