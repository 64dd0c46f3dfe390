/**
 * The program as the image holds it: a few files instead of the some 760 that Node would have to find, read and
 * compile one by one (docs/decisions/0011). Two folders down, as `dist/core`, so that it finds `migrations/` and the rest.
 */
export default {
  input: 'src/main.ts',
  platform: 'node',
  resolve: { extensionAlias: { '.js': ['.ts', '.js'] } },
  transform: { target: 'node20' },
  // The maps lead from a stack to the sources, whose text they need not repeat (docs/decisions/0011).
  output: { dir: 'build/program', format: 'esm', sourcemap: true, sourcemapExcludeSources: true, cleanDir: true },
};
