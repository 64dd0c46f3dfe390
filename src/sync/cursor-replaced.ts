import { troubleOf } from '../outcome/trouble.js';
import type { Trouble } from './ports.js';

/**
 * The service rejected a cursor, and what it stood for goes on from elsewhere. A failure like others, so that a service that
 * rejects every cursor is not asked without pause.
 */
export class CursorReplaced extends Error implements Trouble {
  override readonly name = 'CursorReplaced';
  readonly kind: string;
  readonly remedy = 'retry';
  /**
   * @param refusal what the service answered
   * @param retryAfterMs the pause, milliseconds
   */
  constructor(
    whose: 'the feed' | 'a pass',
    refusal: unknown,
    readonly retryAfterMs: number,
  ) {
    super(`the service rejected the cursor of ${whose}, which falls back to an earlier position`, { cause: refusal });
    this.kind = troubleOf(refusal).kind;
  }
}
