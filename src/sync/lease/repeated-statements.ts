import { classifyError } from '../../core/errors.js';

/** A statement that can be sent again, whether or not it was executed before. */
type Statement = () => Promise<void>;

/** Statements that must be executed, however long the database is unreachable. */
export class RepeatedStatements {
  readonly #failed = new Set<Statement>();

  /** Sends a statement. If it fails temporarily, it is sent again with each `repeat` until it succeeds. Never rejects. */
  async run(statement: Statement): Promise<void> {
    await statement().catch((error: unknown) => {
      if (classifyError(error).action === 'retry') this.#failed.add(statement);
    });
  }

  /** Sends the statements that have failed. Called when the database has answered. */
  readonly repeat = (): void => {
    const failed = [...this.#failed];
    this.#failed.clear();
    for (const statement of failed) void this.run(statement);
  };
}
