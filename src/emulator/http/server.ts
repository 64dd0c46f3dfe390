import multipart from '@fastify/multipart';
import Fastify, { type FastifyInstance, type FastifyReply } from 'fastify';
import { addControlRoutes } from '../control/control-routes.js';
import { json } from '../model/refusal.js';
import type { Service } from '../service.js';
import { feed } from './feed-route.js';
import { operation } from './operation.js';
import { run } from './run-route.js';
import { submit } from './submit-route.js';

/** The HTTP server: the service under `/v1`, the control surface under `/_emulator`. */
export function createServer(service: Service): FastifyInstance {
  const server = Fastify({
    exposeHeadRoutes: false,
    // Hanging and dripping answers must not keep a closing server.
    forceCloseConnections: true,
    routerOptions: { maxParamLength: 4096 },
    bodyLimit: 64 * 1024 * 1024,
    frameworkErrors: (_error, _request, reply: FastifyReply) => refuse(reply, 400, 'Ungültige Anfrage.'),
  });
  server.setNotFoundHandler((_request, reply) => refuse(reply, 404, 'Die Ressource wurde nicht gefunden.'));
  server.setErrorHandler(({ statusCode = 500 }: { statusCode?: number }, _request, reply) =>
    refuse(reply, statusCode, statusCode < 500 ? 'Ungültige Anfrage.' : 'Interner Serverfehler.'),
  );
  server.register(async (scope) => addServiceRoutes(scope, service), { prefix: '/v1' });
  server.register(async (scope) => addControlRoutes(scope, service), { prefix: '/_emulator' });
  return server;
}

function refuse(reply: FastifyReply, status: number, error: string): FastifyReply {
  return reply.code(status).header('content-type', json).send(JSON.stringify({ error }));
}

async function addServiceRoutes(scope: FastifyInstance, service: Service): Promise<void> {
  // The service itself says what it thinks of a body that is no form; the framework must not refuse it before.
  scope.removeAllContentTypeParsers();
  await scope.register(multipart);
  scope.addContentTypeParser('*', (_request, _payload, done) => done(null));
  scope.get('/scans', operation(service, 'feed', feed));
  scope.get('/scans/:scanId', operation(service, 'run', run));
  scope.post('/scans', operation(service, 'submit', submit));
}
