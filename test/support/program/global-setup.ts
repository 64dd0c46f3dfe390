import { fileURLToPath } from 'node:url';
import type { TestProject } from 'vitest/node';
import { compileProgram } from './compile-program.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** The bin of the program, compiled from the sources as they are. */
    programPath: string;
  }
}

/** Compiles the program for the files that run it as a process, once a run. */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const program = await compileProgram(fileURLToPath(new URL('../../../', import.meta.url)));
  project.provide('programPath', program.path);
  return program.remove;
}
