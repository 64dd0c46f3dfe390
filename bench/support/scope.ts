/** What has to be ended when a measurement is over, last first. */
export class Scope {
  readonly #undos: (() => unknown)[] = [];

  defer(undo: () => unknown): void {
    this.#undos.push(undo);
  }

  async close(): Promise<void> {
    for (const undo of this.#undos.splice(0).reverse()) await undo();
  }
}

/** Runs `work` in a scope of its own, which is closed however it ends. */
export async function inScope<T>(work: (scope: Scope) => Promise<T>): Promise<T> {
  const scope = new Scope();
  try {
    return await work(scope);
  } finally {
    await scope.close();
  }
}
