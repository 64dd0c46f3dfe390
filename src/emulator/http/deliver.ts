import type { FastifyReply } from 'fastify';
import type { Fault } from '../model/fault-types.js';
import { type Answer, errorAnswer } from '../model/refusal.js';

/** Returns the response of a fault that takes effect before any work, or null. */
export function answerInstead(fault: Fault | null): Answer | 'hang' | 'reset' | null {
  switch (fault?.kind) {
    case 'hang':
    case 'reset':
      return fault.kind;
    case 'status': {
      const retry: Record<string, string> =
        fault.retryAfter === undefined ? {} : { 'retry-after': String(fault.retryAfter) };
      const status = fault.status ?? 503;
      return errorAnswer(status, fault.error ?? germanFor(status), { ...retry, ...fault.headers });
    }
    case 'html':
      return {
        status: fault.status ?? 200,
        headers: { 'content-type': 'text/html; charset=utf-8', ...fault.headers },
        body: fault.body ?? '<!doctype html><html lang="de"><title>Wartung</title><h1>Wartungsarbeiten</h1></html>',
      };
    case 'answer':
      return { status: fault.status ?? 200, headers: fault.headers ?? {}, body: fault.body ?? '' };
    default:
      return null;
  }
}

function germanFor(status: number): string {
  if (status === 429) return 'Zu viele Anfragen. Bitte versuchen Sie es später erneut.';
  if (status === 503) return 'Der Dienst ist vorübergehend nicht verfügbar.';
  return status >= 500 ? 'Interner Serverfehler.' : 'Die Anfrage wurde abgelehnt.';
}

export interface Delivery {
  /** Value of the `Date` header, or null. */
  readonly date: Date | null;
  /** Value of the `Cache-Control` header, or null. */
  readonly cacheControl: string | null;
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** Sends a response with the damage of the fault. */
export async function deliver(
  reply: FastifyReply,
  answer: Answer,
  fault: Fault | null,
  delivery: Delivery,
): Promise<void> {
  const whole = Buffer.from(answer.body as string);
  const headers: Record<string, string> = { ...answer.headers };
  if (delivery.date !== null) headers.date = delivery.date.toUTCString();
  if (delivery.cacheControl !== null) headers['cache-control'] = delivery.cacheControl;
  reply.raw.sendDate = false;
  const body =
    fault?.kind === 'empty' ? Buffer.alloc(0) : fault?.kind === 'half' ? whole.subarray(0, whole.length >> 1) : whole;
  if (fault?.kind !== 'cut' && fault?.kind !== 'slow') {
    await reply.code(answer.status).headers(headers).send(body);
    return;
  }
  reply.hijack();
  const raw = reply.raw;
  raw.writeHead(answer.status, fault.chunked ? headers : { ...headers, 'content-length': String(body.length) });
  if (fault.kind === 'cut') {
    raw.write(body.subarray(0, fault.afterBytes ?? body.length >> 1), () => raw.destroy());
    return;
  }
  await drip(reply, body, fault, delivery.sleep);
}

async function drip(reply: FastifyReply, body: Buffer, fault: Fault, sleep: Delivery['sleep']): Promise<void> {
  const raw = reply.raw;
  const closed = new AbortController();
  raw.once('close', () => closed.abort());
  for (let i = 0; i < body.length && !closed.signal.aborted; i += fault.dripBytes) {
    raw.write(body.subarray(i, i + fault.dripBytes));
    await sleep(fault.dripMs, closed.signal).catch(() => undefined);
  }
  raw.end();
}
