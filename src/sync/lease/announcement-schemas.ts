/**
 * Number of schemas in which a process is announced. One is enough for processes with the same feeds to find each other; with
 * three, they still do if one or two schemas are unavailable.
 */
const ANNOUNCEMENT_SCHEMAS = 3;

/** The schemas of a process's feeds. The process announces itself in the first few by name, and finds other processes there. */
export interface AnnouncementSchemas {
  add(schema: string): void;
  delete(schema: string): void;
  /** Returns whether the process is to be announced in a schema. */
  has(schema: string): boolean;
  /**
   * Records the processes that are announced in a schema. Returns all processes that are announced in any of them, sorted.
   * Outdated announcements are ignored.
   */
  record(schema: string, processes: readonly string[], now: number): readonly string[];
}

/** @param validMs time for which the announcements read from a schema are valid; all times are monotonic, milliseconds */
export function createAnnouncementSchemas(validMs: number): AnnouncementSchemas {
  const schemas = new Set<string>();
  const found = new Map<string, { readonly processes: readonly string[]; readonly at: number }>();
  /** Null: not known since the schemas changed. */
  let first: readonly string[] | null = null;
  return {
    add: (schema) => {
      schemas.add(schema);
      first = null;
    },
    delete: (schema) => {
      schemas.delete(schema);
      found.delete(schema);
      first = null;
    },
    has: (schema) => {
      first ??= [...schemas].sort().slice(0, ANNOUNCEMENT_SCHEMAS);
      return first.includes(schema);
    },
    record: (schema, processes, at) => {
      found.set(schema, { processes, at });
      const current = [...found.values()].filter((each) => at - each.at < validMs);
      return [...new Set(current.flatMap((each) => each.processes))].sort();
    },
  };
}
