import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { entryJson, type Fields, pageJson } from './entries.js';

const TICK_MS = 5;
const PIECE_BYTES = 16 * 1024;

export interface LineConfig {
  readonly bytesPerSecond: number;
  /** Whether responses have a Content-Length. Otherwise they are sent in chunks, as a proxy does that compresses. */
  readonly announced: boolean;
  /** Runs of each feed. */
  readonly runs: number;
  /** Size of the result of each run. */
  readonly resultBytes: number;
  /** Whether the feed leaves the results out. */
  readonly truncated: boolean;
}

/** What was sent over the line. */
export interface Traffic {
  requests: number;
  cancelled: number;
  bytes: number;
}

interface Sending {
  readonly response: ServerResponse;
  readonly pieces: readonly Buffer[];
  /** Number of pieces that were sent. */
  sent: number;
}

export interface SlowLine {
  /** With `/v1`. */
  readonly url: string;
  readonly traffic: Readonly<Traffic>;
  close(): void;
}

/** Starts a service at the end of a line of fixed bandwidth, which all responses share. All feeds have the same entries. */
export async function startSlowLine(config: LineConfig): Promise<SlowLine> {
  const traffic: Traffic = { requests: 0, cancelled: 0, bytes: 0 };
  const sending = new Set<Sending>();
  const answerTo = createAnswers(config);
  const server = createServer((request, response) => {
    traffic.requests += 1;
    const pieces = answerTo(request.url ?? '');
    response.setHeader('content-type', 'application/json');
    const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
    if (config.announced) response.setHeader('content-length', length);
    const entry = { response, pieces, sent: 0 };
    sending.add(entry);
    response.once('close', () => {
      if (sending.delete(entry)) traffic.cancelled += 1;
    });
  });
  const sendPieces = (allowed: number): number => {
    let left = allowed;
    for (const entry of sending) {
      if (left <= 0 || entry.response.writableNeedDrain) continue;
      const piece = entry.pieces[entry.sent] ?? Buffer.alloc(0);
      entry.response.write(piece);
      entry.sent += 1;
      traffic.bytes += piece.length;
      left -= piece.length;
      if (entry.sent < entry.pieces.length) continue;
      sending.delete(entry);
      entry.response.end();
    }
    return allowed - left;
  };
  let sentUntil = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    let allowed = ((now - sentUntil) * config.bytesPerSecond) / 1000;
    sentUntil = now;
    for (let sent = 1; allowed > 0 && sent > 0; allowed -= sent) sent = sendPieces(allowed);
    sentUntil += (Math.min(allowed, 0) / config.bytesPerSecond) * -1000;
  }, TICK_MS);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    traffic,
    close: () => {
      clearInterval(timer);
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Returns the responses, which share their largest part, as pieces. */
function createAnswers({ runs, resultBytes, truncated }: LineConfig): (path: string) => readonly Buffer[] {
  const pages = new Map<string, readonly Buffer[]>();
  const text = '@';
  const content = cut(Buffer.alloc(resultBytes, 'x'));
  const entryWith = (over: Fields) => {
    const [before = '', after = ''] = entryJson(over).split(text);
    return after === '' ? cut(Buffer.from(before)) : [Buffer.from(before), ...content, Buffer.from(after)];
  };
  const pageFrom = (from: number, limit: number) => {
    const next = Math.min(from + limit, runs);
    const entries = Array.from({ length: next - from }, (_, index) => {
      const deliveredAt = new Date(Date.UTC(2026, 0, 1) + (from + index) * 1000).toISOString();
      const result = truncated ? { data: undefined, resultTruncated: true } : { data: { text } };
      return entryWith({ scanId: `scan-${from + index}`, deliveredAt, ...result });
    });
    const [before, after] = pageJson([text], `${next}`).split(text);
    const separated = entries.flatMap((entry, index) => (index === 0 ? entry : [Buffer.from(','), ...entry]));
    return cut(Buffer.concat([Buffer.from(before ?? ''), ...separated, Buffer.from(after ?? '')]));
  };
  return (path) => {
    const { pathname, searchParams } = new URL(path, 'http://line');
    const scanId = /\/scans\/(.+)$/.exec(pathname)?.[1];
    if (scanId !== undefined) return entryWith({ scanId, data: { text } });
    const page =
      pages.get(path) ?? pageFrom(Number(searchParams.get('cursor') ?? 0), Number(searchParams.get('limit')));
    pages.set(path, page);
    return page;
  };
}

function cut(body: Buffer): readonly Buffer[] {
  const count = Math.ceil(body.length / PIECE_BYTES);
  return Array.from({ length: count }, (_, index) => body.subarray(index * PIECE_BYTES, (index + 1) * PIECE_BYTES));
}
