import pg from 'pg';
import { afterAll, beforeAll } from 'vitest';

/** A session that listens to the changes of runs in the schema `scanfeed`. */
export interface ChangeListener {
  /** Returns the payloads of the notifications that were sent since the last call. */
  sent(): Promise<string[]>;
}

/** Listens to the changes of a database during the tests. */
export function useChangeListener(provided: { readonly url: string }): ChangeListener {
  let heard: string[] = [];
  let listener: pg.Client | undefined;
  beforeAll(async () => {
    listener = new pg.Client({ connectionString: provided.url });
    listener.on('notification', ({ payload = '' }) => heard.push(payload));
    await listener.connect();
    await listener.query('LISTEN scanfeed_changes');
  });
  afterAll(() => listener?.end());
  return {
    async sent() {
      // Notifications arrive in the order of commits, so what was sent before this one has arrived with it.
      await listener?.query(`NOTIFY scanfeed_changes, 'end'`);
      while (heard.at(-1) !== 'end') await new Promise(setImmediate);
      const payloads = heard.slice(0, -1);
      heard = [];
      return payloads;
    },
  };
}
