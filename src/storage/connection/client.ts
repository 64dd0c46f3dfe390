import pg from 'pg';

/** How to reach PostgreSQL, in `pg`'s own terms: what `sslmode` means is decided in one place, the settings. */
export interface DatabaseConnection extends Readonly<pg.ClientConfig> {
  /** Whether a server without TLS is used as well (`sslmode=prefer`). */
  readonly tlsOptional?: boolean;
}

/** The driver's client, which can also prefer TLS: the driver itself either requires it or does without. */
export class DatabaseClient extends pg.Client {
  constructor(config: DatabaseConnection = {}) {
    super(config);
    if (config.tlsOptional === true) allowPlain(this.connection as DriverConnection);
  }
}

/** What the driver's types leave out. */
type DriverConnection = pg.Connection & { attachListeners(stream: pg.Connection['stream']): void };

/**
 * Lets a connection log in without TLS if the server answers N (it has none), where the driver would give up. Bytes that
 * follow the N may be an attacker's (CVE-2021-23222): such an answer is left to the driver, which refuses it.
 */
function allowPlain(connection: DriverConnection): void {
  connection.once('connect', () => {
    const { stream } = connection;
    const [takeAnswer] = stream.listeners('data');
    stream.removeAllListeners('data');
    stream.once('data', (answer: Buffer) => {
      if (answer.toString() !== 'N') return takeAnswer?.(answer);
      connection.attachListeners(stream);
      connection.emit('sslconnect'); // makes the driver log in
    });
  });
}
