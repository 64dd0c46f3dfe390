/**
 * Number of schemas in which a process is announced. One would do for processes with the same feeds to find each other; with three
 * they do even if one of them cannot be used.
 */
const MEETING_SCHEMAS = 3;

/** The schemas of the feeds of a process: in the first ones by name it is announced, and finds the others. */
export interface MeetingSchemas {
  add(schema: string): void;
  delete(schema: string): void;
  /** Returns whether the process is to be announced in a schema. */
  has(schema: string): boolean;
  /**
   * Records the processes that are announced in a schema. Returns those that are announced in any, in order. What was found too long
   * ago does not count.
   */
  found(schema: string, processes: readonly string[], now: number): readonly string[];
}

/** @param validMs how long what was found in a schema counts; all times are monotonic, milliseconds */
export function createMeetingSchemas(validMs: number): MeetingSchemas {
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
      first ??= [...schemas].sort().slice(0, MEETING_SCHEMAS);
      return first.includes(schema);
    },
    found: (schema, processes, at) => {
      found.set(schema, { processes, at });
      const current = [...found.values()].filter((each) => at - each.at < validMs);
      return [...new Set(current.flatMap((each) => each.processes))].sort();
    },
  };
}
