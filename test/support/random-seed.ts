/**
 * With TEST_SEED, properties try the same random cases in each run, so that a failure in CI is due to the change. Without it
 * each run tries others.
 */
const { TEST_SEED } = process.env;
if (TEST_SEED) {
  const { configureGlobal } = await import('fast-check');
  configureGlobal({ seed: Number(TEST_SEED) });
}
