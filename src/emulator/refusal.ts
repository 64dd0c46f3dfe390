/** A request that the service refuses (interface 7): a status code and the German text of the error body. */
export class Refusal extends Error {
  readonly status: number;

  constructor(status: number, text: string) {
    super(text);
    this.name = 'Refusal';
    this.status = status;
  }
}

/** An answer as it goes out. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
}

export const json = 'application/json; charset=utf-8';

export function jsonAnswer(status: number, body: string | Uint8Array, headers: Record<string, string> = {}): Answer {
  return { status, headers: { 'content-type': json, ...headers }, body };
}

export function errorAnswer(status: number, text: string, headers: Record<string, string> = {}): Answer {
  return jsonAnswer(status, JSON.stringify({ error: text }), headers);
}
