const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const;

/**
 * Makes SIGTERM and SIGINT end process 1 of a container as they end any other: the system drops what process 1 does not
 * handle. Whoever handles a signal himself is left to it.
 */
export function endOnSignals(process: NodeJS.Process): void {
  if (process.pid !== 1) return;
  for (const [name, exitCode] of Object.entries(EXIT_CODES) as [NodeJS.Signals, number][]) {
    process.on(name, () => {
      if (process.listenerCount(name) === 1) process.exit(exitCode);
    });
  }
}
