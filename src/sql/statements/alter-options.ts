/** ALTER TABLE with options of the table: SET TTL, DEDUP, SET PARAM, SET TYPE, RESUME WAL and SQUASH PARTITIONS. */
import { SqlError, SQLSTATE } from "../../errors.ts";
import type { TableOptions, TableSchema } from "../../storage/contract.ts";
import type { Permission } from "../../access/mod.ts";
import type { Name, Statement } from "../ast.ts";
import type { BoundStatement } from "../plan.ts";
import { at, given, type Node } from "../tree-nodes.ts";
import { onlyName } from "./names.ts";
import type { Setting } from "./parts.ts";
import { done, type StatementKind } from "./statement.ts";
import { dedupKeys, parseTtl, tableParams, type WrittenTtl } from "./table-options.ts";

/** The option after the table's name. `at`: offset of its first word; `tableAt`: offset of the name. */
type Option =
  | { option: "ttl"; ttl: WrittenTtl }
  | { option: "dedup"; keys?: Name[]; keysAt: number }
  | { option: "param"; setting: Setting }
  | { option: "type"; wal: boolean }
  | { option: "resume"; walAt: number }
  | { option: "squash" };

interface AlterOptions extends Statement {
  kind: "alterOptions";
  table: Name;
  change: Option;
}

export interface BoundAlterOptions extends BoundStatement<never> {
  kind: "alterOptions";
  tableId: number;
  /** Undefined if there is nothing to change. */
  options?: TableOptions;
}

export const alterOptions: StatementKind<AlterOptions, BoundAlterOptions> = {
  kind: "alterOptions",
  form: {
    words: ["ALTER"],
    grammar: String.raw`
  alterOptions = "ALTER" "TABLE" tableName optionChange
  optionChange = "SET" "TTL" ttl                         -- ttl
               | "DEDUP" "DISABLE"                       -- dedupOff
               | "DEDUP" "ENABLE"? keys                  -- dedupOn
               | "DEDUP" "ENABLE"                        -- dedupBare
               | "SET" "PARAM" setting                   -- param
               | "SET" "TYPE" "BYPASS"? "WAL"            -- type
               | "RESUME" "WAL" ("FROM" ("TRANSACTION" | "TXN") "<number>")?  -- resume
               | "SQUASH" "PARTITIONS"                   -- squash`,
    actions: {
      alterOptions(alter, _table, table, change): AlterOptions {
        return { kind: "alterOptions", at: at(alter), table: onlyName(table.tree()), change: change.tree() };
      },
      optionChange_ttl: (_set, _word, ttl): Option => ({ option: "ttl", ttl: { at: at(ttl), text: ttl.tree() } }),
      optionChange_dedupOff: (dedup, _disable): Option => ({ option: "dedup", keysAt: at(dedup) }),
      optionChange_dedupOn: (_dedup, _enable, keys): Option => ({
        option: "dedup",
        keys: keys.tree(),
        keysAt: at(keys),
      }),
      optionChange_dedupBare(_dedup, enable) {
        throw new SqlError("DEDUP ENABLE needs UPSERT KEYS(column, …)", at(enable), SQLSTATE.syntax);
      },
      optionChange_param: (_set, _param, setting): Option => ({ option: "param", setting: setting.tree() }),
      optionChange_type: (_set, _type, bypass, _wal): Option => ({ option: "type", wal: !given(bypass) }),
      optionChange_resume: (_resume, wal, _from, _what, _number): Option => ({ option: "resume", walAt: at(wal) }),
      optionChange_squash: (_squash: Node, _partitions: Node): Option => ({ option: "squash" }),
    },
  },
  reference: {
    syntax: `ALTER TABLE table SET TTL n unit
ALTER TABLE table DEDUP ENABLE UPSERT KEYS(column, …)
ALTER TABLE table DEDUP DISABLE
ALTER TABLE table SET PARAM maxUncommittedRows = n | o3MaxLag = time
ALTER TABLE table SET TYPE [BYPASS] WAL
ALTER TABLE table RESUME WAL
ALTER TABLE table SQUASH PARTITIONS`,
    summary: "`SET TTL` drops partitions that end this long before the newest row, or before now if rows are in the " +
      "future; `0h` keeps all. `DEDUP ENABLE` lets new rows replace those with the same keys; existing rows are not " +
      "compared with each other. `SET PARAM` is kept and listed, but has no effect. `SET TYPE` applies at once. `RESUME WAL` and " +
      "`SQUASH PARTITIONS` have nothing to do here.",
  },
  category: "ddl",
  requires: ["SET TABLE PARAM", "DEDUP ENABLE", "DEDUP DISABLE", "SET TABLE TYPE", "RESUME WAL"],

  bind({ table, change }, { binding }) {
    const { schema } = binding.table(table);
    binding.requires.add(permissionOf(change), table.at, schema);
    return { kind: "alterOptions", tableId: schema.id, options: optionsOf(change, schema, table) };
  },

  async execute({ tableId, options }, run) {
    if (options === undefined) return done("ddl", "ALTER TABLE");
    await run.define({ kind: "setOptions", tableId, options });
    return run.defined("ALTER TABLE");
  },
};

function permissionOf(change: Option): Permission {
  switch (change.option) {
    case "dedup":
      return change.keys === undefined ? "DEDUP DISABLE" : "DEDUP ENABLE";
    case "type":
      return "SET TABLE TYPE";
    case "resume":
      return "RESUME WAL";
    default:
      return "SET TABLE PARAM";
  }
}

function optionsOf(change: Option, schema: TableSchema, table: Name): TableOptions | undefined {
  switch (change.option) {
    case "ttl":
      return { ttl: parseTtl(change.ttl, schema.partitionBy) ?? null };
    case "dedup": {
      const { keys = [], keysAt } = change;
      if (change.keys === undefined) return { dedupKeys: [] };
      const timestamp = schema.columns.findIndex(({ id }) => id === schema.timestampId);
      const at = schema.wal ? keysAt : table.at;
      const indexes = dedupKeys({ keys, at, wal: schema.wal }, schema.columns, timestamp);
      return { dedupKeys: indexes.map((index) => schema.columns[index]!.id) };
    }
    case "param":
      return { params: tableParams([change.setting], "at") };
    case "type":
      if (change.wal && schema.partitionBy === "NONE") {
        throw new SqlError("a table without partitions cannot have a WAL", table.at, SQLSTATE.invalidParameter);
      }
      if (!change.wal && schema.dedupKeys.length > 0) {
        throw new SqlError("DEDUP needs a table with WAL: disable it first", table.at, SQLSTATE.invalidParameter);
      }
      return { wal: change.wal };
    case "resume":
      if (!schema.wal) throw new SqlError(`${schema.name} has no WAL`, change.walAt, SQLSTATE.invalidParameter);
      return undefined;
    case "squash":
      return undefined;
  }
}
