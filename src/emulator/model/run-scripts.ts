import { type Answer, json } from './refusal.js';

/** A scripted single-run response. The body is sent verbatim. */
export interface ScriptedAnswer {
  /** 200 if not given. */
  status?: number;
  /** Further headers; the content type is `application/json` unless they say otherwise. */
  headers?: Readonly<Record<string, string>>;
  /** The body, byte for byte. */
  body: string | Uint8Array;
  /** Number of times that it is given; unlimited by default. */
  times?: number | undefined;
}

/** Scripted responses of the single-run endpoint, by scan id, given in order. They apply to every organization. */
export class RunScripts {
  readonly #scripts = new Map<string, { answer: Answer; left: number }[]>();

  add(scanId: string, script: ScriptedAnswer): void {
    const { status = 200, headers = {}, body, times = Number.POSITIVE_INFINITY } = script;
    const list = this.#scripts.get(scanId) ?? [];
    list.push({ answer: { status, headers: { 'content-type': json, ...headers }, body }, left: times });
    this.#scripts.set(scanId, list);
  }

  clear(scanId: string): void {
    this.#scripts.delete(scanId);
  }

  take(scanId: string): Answer | null {
    const list = this.#scripts.get(scanId);
    const first = list?.[0];
    if (list === undefined || first === undefined) return null;
    first.left--;
    if (first.left <= 0) list.shift();
    return first.answer;
  }
}
