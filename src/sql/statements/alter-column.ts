/** ALTER TABLE … ALTER COLUMN: how a SYMBOL column is stored. */
import { SqlError, SQLSTATE } from "../../errors.ts";
import type { Permission } from "../../access/mod.ts";
import type { SymbolOptions, TableSchema } from "../../storage/contract.ts";
import type { Name, Statement } from "../ast.ts";
import type { BoundStatement } from "../plan.ts";
import { at, name, optional, wholeNumber } from "../tree-nodes.ts";
import { checkSymbolCapacity } from "./columns.ts";
import { capacityOf, checkIncluded, indexCapacityOf, type IndexOption } from "./index-option.ts";
import { findColumn, onlyName } from "./names.ts";
import type { StatementKind } from "./statement.ts";

export interface ColumnChange {
  permission: Permission;
  options: SymbolOptions;
  index?: IndexOption;
}

interface AlterColumn extends Statement {
  kind: "alterColumn";
  table: Name;
  column: Name;
  change: ColumnChange;
}

export interface BoundAlterColumn extends BoundStatement<never> {
  kind: "alterColumn";
  tableId: number;
  columnId: number;
  options: SymbolOptions;
}

export const alterColumn: StatementKind<AlterColumn, BoundAlterColumn> = {
  kind: "alterColumn",
  form: {
    words: ["ALTER"],
    grammar: String.raw`
  alterColumn = "ALTER" "TABLE" tableName "ALTER" "COLUMN" columnName symbolChange
  symbolChange = "ADD" "INDEX" indexOption?              -- addIndex
               | "DROP" "INDEX"                          -- dropIndex
               | "CACHE"                                 -- cache
               | "NOCACHE"                               -- nocache
               | "SYMBOL" "CAPACITY" "<number>"          -- capacity`,
    actions: {
      alterColumn(alter, _table, table, _alter, _column, column, change): AlterColumn {
        return {
          kind: "alterColumn",
          at: at(alter),
          table: onlyName(table.tree()),
          column: name(column),
          change: change.tree(),
        };
      },
      symbolChange_addIndex(_add, _index, option): ColumnChange {
        const index = optional<IndexOption>(option) ?? {};
        return { permission: "ADD INDEX", options: { indexed: true, indexCapacity: indexCapacityOf(index) }, index };
      },
      symbolChange_dropIndex: (_drop, _index): ColumnChange => ({
        permission: "DROP INDEX",
        options: { indexed: false, indexCapacity: undefined },
      }),
      symbolChange_cache: (_cache): ColumnChange => cached(true),
      symbolChange_nocache: (_nocache): ColumnChange => cached(false),
      symbolChange_capacity(_symbol, _capacity, number): ColumnChange {
        const wanted = wholeNumber(number);
        checkSymbolCapacity(wanted, at(number));
        return { permission: "ALTER COLUMN CACHE", options: { symbolCapacity: capacityOf(wanted) } };
      },
    },
  },
  reference: {
    syntax: `ALTER TABLE table ALTER COLUMN column ADD INDEX [CAPACITY n | TYPE kind]
ALTER TABLE table ALTER COLUMN column DROP INDEX
ALTER TABLE table ALTER COLUMN column CACHE | NOCACHE
ALTER TABLE table ALTER COLUMN column SYMBOL CAPACITY n`,
    summary:
      "For SYMBOL columns. An index finds the rows of a symbol in segments that are written from then on, and in older ones once the server has been idle. " +
      "`DROP INDEX` leaves the indexes of older segments. Capacities and `CACHE` are kept and listed, but have no effect. " +
      "`TYPE BITMAP` and `TYPE POSTING [DELTA | EF] [INCLUDE (column, …)]` make the same index.",
  },
  category: "ddl",
  requires: ["ADD INDEX", "DROP INDEX", "ALTER COLUMN CACHE"],

  bind({ table, column, change: { permission, options, index } }, { binding }) {
    const { schema } = binding.table(table);
    binding.requires.ofColumns(permission, table.at, schema).use(findColumn(schema, column).id, column.text, column.at);
    const { id } = symbolColumn(schema, column);
    if (index !== undefined) checkIncluded(index, schema.columns);
    return { kind: "alterColumn", tableId: schema.id, columnId: id, options };
  },

  async execute({ tableId, columnId, options }, run) {
    await run.define({ kind: "setColumn", tableId, columnId, options });
    return run.defined("ALTER TABLE");
  },
};

/** @throws {SqlError} at the name for a column of another type. */
export function symbolColumn(schema: TableSchema, name: Name): TableSchema["columns"][number] {
  const column = findColumn(schema, name);
  if (column.type === "SYMBOL") return column;
  throw new SqlError(
    `${name.text} is ${column.type}: only SYMBOL columns have an index, a cache and a capacity`,
    name.at,
    SQLSTATE.invalidParameter,
  );
}

function cached(symbolCached: boolean): ColumnChange {
  return { permission: "ALTER COLUMN CACHE", options: { symbolCached } };
}
