import type { FeedFilters, FilterChange } from '../ports/index.js';

const STATUSES = ['completed', 'failed'] as const;
const ENVIRONMENTS = ['prod', 'test'] as const;

/** Compares what filters include. Pure. */
export function filterChange(before: FeedFilters, now: FeedFilters): FilterChange {
  return { hides: included(before, now), leavesBehind: included(now, before) };
}

/** Returns the runs that `these` include and `those` do not. */
function included(these: FeedFilters, those: FeedFilters): string[] {
  const statuses = STATUSES.filter((status) => these.status.includes(status) && !those.status.includes(status));
  const environments = ENVIRONMENTS.filter((name) => includes(these, name) && !includes(those, name));
  return [
    ...statuses.map((status) => `${status} runs`),
    ...environments.map((environment) => `runs of the environment ${environment}`),
    ...documentTypes(these.documentType, those.documentType),
  ];
}

function includes({ environment }: FeedFilters, name: (typeof ENVIRONMENTS)[number]): boolean {
  return environment === 'all' || environment === name;
}

function documentTypes(these: string | null, those: string | null): string[] {
  if (these === those || those === null) return [];
  return [these === null ? `runs of other document types than ${those}` : `runs of the document type ${these}`];
}
