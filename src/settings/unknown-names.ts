import { fileVariableOf } from './reader.js';
import { ALL_VARIABLES } from './variables.js';

/** Endings of the variables that Kubernetes sets in every pod for a service whose name begins with `scanfeed`. */
const SERVICE_LINK = /_(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$/;

/** Returns a warning for each unknown `SCANFEED_` variable, with the most similar known name if there is one. */
export function unknownNames(env: NodeJS.ProcessEnv): string[] {
  const known = ALL_VARIABLES.flatMap(({ name, secret }) => (secret ? [name, fileVariableOf({ name })] : [name]));
  return Object.keys(env)
    .filter((name) => name.startsWith('SCANFEED_') && !known.includes(name) && !SERVICE_LINK.test(name))
    .sort()
    .map((name) => {
      const nearest = nearestName(name, known);
      return `${name} is not a setting and is ignored${nearest === null ? '' : `; did you mean ${nearest}?`}`;
    });
}

/** Returns the only known name that has all words of this one, else the one with the smallest edit distance; null if none is similar. */
function nearestName(name: string, known: readonly string[]): string | null {
  const words = name.split('_');
  const [longer, ...others] = known.filter((candidate) => words.every((word) => candidate.split('_').includes(word)));
  if (longer !== undefined && others.length === 0) return longer;
  const [nearest] = known
    .map((candidate) => ({ candidate, distance: editDistance(name, candidate) }))
    .sort((a, b) => a.distance - b.distance);
  return nearest !== undefined && nearest.distance <= 5 ? nearest.candidate : null;
}

/** Returns the Levenshtein distance. */
function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      row.push(Math.min(replaced, (previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1));
    }
    previous = row;
  }
  return previous[b.length] ?? 0;
}
