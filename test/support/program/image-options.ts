import { readFileSync } from 'node:fs';

/** Memory of the container that the documentation promises to be enough for a feed, MiB. */
const CONTAINER_MIB = 256;

/**
 * Returns the options of the image's entry point, in a container of this memory. Reads the Dockerfile of the working directory.
 */
export function imageOptions(containerMib = CONTAINER_MIB): readonly string[] {
  const dockerfile = readFileSync('Dockerfile', 'utf8');
  const entryPoint = /^ENTRYPOINT (\[.*\])$/m.exec(dockerfile)?.[1];
  if (entryPoint === undefined) throw new TypeError('the Dockerfile starts nothing');
  const [, ...started] = JSON.parse(entryPoint) as string[];
  return started.filter((argument) => argument.startsWith('--')).map((option) => inContainer(option, containerMib));
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
