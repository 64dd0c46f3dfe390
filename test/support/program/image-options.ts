import { readFileSync } from 'node:fs';

/** Memory of the container that the documentation promises to be enough for a feed, MiB. */
const CONTAINER_MIB = 256;

/**
 * Returns Node's options in the image, in a container of this memory: those of its environment and of its entry point. Reads the
 * Dockerfile of the working directory.
 */
export function imageOptions(containerMib = CONTAINER_MIB): readonly string[] {
  const dockerfile = readFileSync('Dockerfile', 'utf8');
  const environment = /NODE_OPTIONS="([^"]*)"/.exec(dockerfile)?.[1]?.split(' ');
  const entryPoint = /^ENTRYPOINT (\[.*\])$/m.exec(dockerfile)?.[1];
  if (environment === undefined || entryPoint === undefined) throw new TypeError('the Dockerfile starts nothing');
  const [, ...started] = JSON.parse(entryPoint) as string[];
  return [...environment, ...started.filter((argument) => argument.startsWith('--'))].map((option) =>
    inContainer(option, containerMib),
  );
}

/** Returns the settings of the image for the allocator of the C library. */
export function imageEnvironment(): Readonly<Record<string, string>> {
  const threshold = /MALLOC_MMAP_THRESHOLD_=(\d+)/.exec(readFileSync('Dockerfile', 'utf8'))?.[1];
  if (threshold === undefined) throw new TypeError('the Dockerfile sets no threshold');
  return { MALLOC_MMAP_THRESHOLD_: threshold };
}

/** Converts a share of the memory to MiB. Node 20 has no such option, and outside a container it refers to the machine's memory. */
function inContainer(option: string, containerMib: number): string {
  const share = /^--max-old-space-size-percentage=(\d+)$/.exec(option)?.[1];
  return share === undefined ? option : `--max-old-space-size=${Math.floor((containerMib * Number(share)) / 100)}`;
}
