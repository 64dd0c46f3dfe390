import { type KyselyPlugin, type OperationNode, RawNode } from 'kysely';
import type { Database } from '../../src/storage/connection/pool.js';

/** A statement of a commit: a page with its position, or a position alone. */
export type CommitStatement = 'page' | 'position';

/** The database, where each statement of a commit is noted before it is sent. */
export function notingCommits(database: Database, note: (statement: CommitStatement) => void): Database {
  const plugin: KyselyPlugin = {
    transformQuery: ({ node }) => {
      const text = textOf(node);
      if (text.includes('judged AS')) note('page');
      else if (text.includes('counts AS')) note('position');
      return node;
    },
    transformResult: async ({ result }) => result,
  };
  return { ...database, sql: database.sql.withPlugin(plugin) };
}

function textOf(node: OperationNode): string {
  return RawNode.is(node) ? [...node.sqlFragments, ...node.parameters.map(textOf)].join(' ') : '';
}
