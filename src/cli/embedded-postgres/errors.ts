/** The bundled PostgreSQL cannot be used. The message is one line for a person and ends with the remedy. */
export class EmbeddedPostgresError extends Error {
  override readonly name = 'EmbeddedPostgresError';
  readonly exitCode = 1;
}
