/** REINDEX TABLE. Symbols have no index to rebuild: conditions on them use statistics and dictionaries. */
import type { Name, Statement } from "../ast.ts";
import type { BoundStatement } from "../plan.ts";
import { at, name, optional, type Path } from "../tree-nodes.ts";
import { findColumn, onlyName } from "./names.ts";
import { done, type StatementKind } from "./statement.ts";

interface Reindex extends Statement {
  kind: "reindex";
  table: Name;
  columns: Name[];
}

export const reindex: StatementKind<Reindex, BoundStatement<never> & { kind: "reindex" }> = {
  kind: "reindex",
  form: {
    words: ["REINDEX"],
    grammar: String.raw`
  reindex = "REINDEX" "TABLE" tableName reindexColumns? reindexPartitions? "LOCK" "EXCLUSIVE"
  reindexColumns = "COLUMN" name ("," name)*
  reindexPartitions = "PARTITION" "<string>" ("," "<string>")*`,
    actions: {
      reindex(reindex, _table, table, columns, _partitions, _lock, _exclusive): Reindex {
        return {
          kind: "reindex",
          at: at(reindex),
          table: onlyName(table.tree() as Path),
          columns: optional<Name[]>(columns) ?? [],
        };
      },
      reindexColumns: (_column, first, _commas, rest) => [first, ...rest.children].map(name),
    },
  },
  reference: {
    syntax: "REINDEX TABLE table [COLUMN column, …] [PARTITION 'name', …] LOCK EXCLUSIVE",
    summary: "Accepted without effect: an index is written with its segment and needs no rebuild.",
  },
  category: "ddl",
  requires: ["REINDEX"],

  bind({ table, columns }, { binding }) {
    const { schema } = binding.table(table);
    for (const column of columns) findColumn(schema, column);
    binding.requires.add("REINDEX", table.at, schema);
    return { kind: "reindex" };
  },

  execute: () => done("ddl", "REINDEX"),
};
