import type { CutPoint } from './tcp-proxy.js';

/** Places in an answer of HTTP/1.1 at which its connection is cut. */
export const ANSWER_PLACES = [
  'before the head',
  'within the head',
  'after the head',
  'within the body',
  'before its end',
] as const;
export type AnswerPlace = (typeof ANSWER_PLACES)[number];

/** At a place of the answer to the first request whose request line matches. Answers follow their requests one by one. */
export function inAnswerTo(request: RegExp, place: AnswerPlace): CutPoint {
  let answer: Buffer | null = null;
  return (from, bytes) => {
    if (from === 'client') {
      if (answer === null && request.test(bytes.toString('latin1'))) answer = Buffer.alloc(0);
      return null;
    }
    if (answer === null) return null;
    const before = answer.length;
    answer = Buffer.concat([answer, bytes]);
    const at = offsetOf(place, answer);
    return at === null ? null : at - before;
  };
}

/** Null: the answer has not come so far. Later places come with later bytes, so nothing of them has passed yet. */
function offsetOf(place: AnswerPlace, answer: Buffer): number | null {
  if (place === 'before the head') return 0;
  if (place === 'within the head') return within(answer, 20);
  const head = answer.indexOf('\r\n\r\n');
  if (head === -1) return null;
  const body = head + 4;
  if (place === 'after the head') return body;
  const [, length] = /\r\ncontent-length: (\d+)\r\n/i.exec(answer.toString('latin1', 0, body)) ?? [];
  if (place === 'within the body')
    return within(answer, body + (length === undefined ? 100 : Math.floor(Number(length) / 2)));
  if (length !== undefined) return within(answer, body + Number(length) - 1);
  const lastChunk = answer.indexOf('\r\n0\r\n\r\n', head);
  return lastChunk === -1 ? null : lastChunk + 2;
}

const within = (answer: Buffer, at: number) => (answer.length >= at ? at : null);
