import { SqlError, SQLSTATE } from "../../errors.ts";
import type { Name, Statement } from "../ast.ts";
import type { BoundStatement } from "../plan.ts";
import { at } from "../tree-nodes.ts";
import { checkTableName, onlyName, refuseOwn } from "./names.ts";
import type { StatementKind } from "./statement.ts";

interface RenameTable extends Statement {
  kind: "renameTable";
  from: Name;
  to: Name;
}

export interface BoundRenameTable extends BoundStatement<never> {
  kind: "renameTable";
  tableId: number;
  to: string;
  at: number;
}

export const renameTable: StatementKind<RenameTable, BoundRenameTable> = {
  kind: "renameTable",
  form: {
    words: ["RENAME"],
    grammar: String.raw`
  renameTable = "RENAME" "TABLE" tableName "TO" tableName`,
    actions: {
      renameTable(rename, _table, from, _to, to): RenameTable {
        return { kind: "renameTable", at: at(rename), from: onlyName(from.tree()), to: onlyName(to.tree()) };
      },
    },
  },
  reference: { syntax: "RENAME TABLE table TO name", summary: "Renames a table." },
  category: "ddl",
  requires: ["RENAME TABLE"],

  bind({ from, to }, { binding }) {
    const { views } = binding.context, isView = views?.view(from.text) !== undefined;
    const { schema } = binding.table({ ...from, at: isView ? from.at : 0 });
    // The dialect finds both errors at run time, so they have position 0.
    checkTableName({ ...to, at: 0 });
    const other = binding.context.catalogue.table(to.text);
    refuseOwn(binding, to, 0);
    if (views?.view(to.text) !== undefined) {
      throw new SqlError(`view ${to.text} exists already`, 0, SQLSTATE.duplicateTable);
    }
    if (other !== undefined) throw new SqlError(`table ${to.text} already exists`, 0, SQLSTATE.duplicateTable);
    binding.requires.add("RENAME TABLE", from.at, schema);
    return { kind: "renameTable", tableId: schema.id, to: to.text, at: to.at };
  },

  async execute({ tableId, to, at }, run) {
    if (run.catalogue.table(to)) {
      throw new SqlError(`Cannot rename to ${to}: a table of that name exists`, at, SQLSTATE.duplicateTable);
    }
    if (run.services.views.isTaken(to)) {
      throw new SqlError(`Cannot rename to ${to}: a view has the name`, at, SQLSTATE.duplicateTable);
    }
    await run.define({ kind: "rename", tableId, to });
    return run.defined("ALTER TABLE");
  },
};
