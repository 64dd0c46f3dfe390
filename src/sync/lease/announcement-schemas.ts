/**
 * Number of schemas in which a process is announced. One is enough for processes with the same feeds to find each other; with
 * three, they still do if one or two schemas are unavailable.
 */
const ANNOUNCEMENT_SCHEMAS = 3;

/**
 * The schemas of a process's feeds. The process announces itself in the first few by name, and finds other processes there.
 * @param validMs time for which the announcements read from a schema are valid; all times are monotonic, milliseconds
 */
export function createAnnouncementSchemas(validMs: number) {
  const schemas = new Set<string>();
  const found = new Map<string, { readonly processes: readonly string[]; readonly at: number }>();
  /** Null: not known since the schemas changed. */
  let first: readonly string[] | null = null;
  return {
    add: (schema: string): void => {
      schemas.add(schema);
      first = null;
    },
    delete: (schema: string): void => {
      schemas.delete(schema);
      found.delete(schema);
      first = null;
    },
    /** Returns whether the process is to be announced in a schema. */
    has: (schema: string): boolean => {
      first ??= [...schemas].sort().slice(0, ANNOUNCEMENT_SCHEMAS);
      return first.includes(schema);
    },
    /**
     * Records the processes that are announced in a schema. Returns all processes that are announced in any of them, sorted.
     * Outdated announcements are ignored.
     */
    record: (schema: string, processes: readonly string[], at: number): readonly string[] => {
      found.set(schema, { processes, at });
      const current = [...found.values()].filter((each) => at - each.at < validMs);
      return [...new Set(current.flatMap((each) => each.processes))].sort();
    },
  };
}
