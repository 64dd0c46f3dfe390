/** A request that the service refuses (interface 7): a status code and the German text of the error body. */
export class Refusal extends Error {
  override readonly name = 'Refusal';

  /** @param described whether the interface lists the status for the operation */
  constructor(
    readonly status: number,
    text: string,
    readonly described: boolean = true,
  ) {
    super(text);
  }
}

/** Rejects a request without a response by destroying its connection. */
export class ConnectionReset extends Error {
  override readonly name = 'ConnectionReset';
}

/** A response as it is sent. */
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
