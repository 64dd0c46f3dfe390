import multipart from '@fastify/multipart';
import Fastify, { type FastifyInstance, type FastifyReply } from 'fastify';
import { addControlRoutes } from '../control/control-routes.js';
import { json } from '../model/refusal.js';
import type { Service } from '../service.js';
import { feed } from './feed-route.js';
import { operation } from './operation.js';
import { run } from './run-route.js';
import { submit } from './submit-route.js';

/** Creates the HTTP server, with the service under `/v1` and the control routes under `/_emulator`. */
export function createServer(service: Service): FastifyInstance {
  const server = Fastify({
    exposeHeadRoutes: false,
    // Hanging and slow responses must not delay closing the server.
    forceCloseConnections: true,
    // Longer ones do not fit into the header that Node accepts. An unknown id is a 404, whatever its length (interface 4.3).
    routerOptions: { maxParamLength: 16 * 1024 },
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
  // The service itself rejects a body that is not a form; the framework must not do so first.
  scope.removeAllContentTypeParsers();
  await scope.register(multipart);
  scope.addContentTypeParser('*', (_request, _payload, done) => done(null));
  scope.get('/scans', operation(service, 'feed', feed));
  scope.get('/scans/:scanId', operation(service, 'run', run));
  scope.post('/scans', operation(service, 'submit', submit));
}
