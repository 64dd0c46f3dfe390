import multipart from '@fastify/multipart';
import Fastify, { type FastifyInstance, type FastifyReply } from 'fastify';
import { addControlRoutes } from './control-routes.js';
import { feed } from './feed-route.js';
import { operation } from './operation.js';
import { json } from './refusal.js';
import { run } from './run-route.js';
import type { Service } from './service.js';
import { submit } from './submit-route.js';

/** The HTTP server: the service under `/v1`, the control surface under `/_emulator`. */
export function createServer(service: Service): FastifyInstance {
  const server = Fastify({
    exposeHeadRoutes: false,
    // Hanging and dripping answers must not keep a closing server.
    forceCloseConnections: true,
    routerOptions: { maxParamLength: 4096 },
    bodyLimit: 64 * 1024 * 1024,
    frameworkErrors: (_error, _request, reply: FastifyReply) => {
      reply.code(400).header('content-type', json).send('{"error":"Ungültige Anfrage."}');
    },
  });
  server.setNotFoundHandler((_request, reply) =>
    reply.code(404).header('content-type', json).send('{"error":"Die Ressource wurde nicht gefunden."}'),
  );
  server.setErrorHandler((error: { statusCode?: number }, _request, reply) => {
    const status = error.statusCode ?? 500;
    const text = status < 500 ? 'Ungültige Anfrage.' : 'Interner Serverfehler.';
    return reply
      .code(status)
      .header('content-type', json)
      .send(JSON.stringify({ error: text }));
  });
  server.register(async (scope) => addServiceRoutes(scope, service), { prefix: '/v1' });
  server.register(async (scope) => addControlRoutes(scope, service), { prefix: '/_emulator' });
  return server;
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
