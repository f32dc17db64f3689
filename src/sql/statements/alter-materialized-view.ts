import type { Permission } from "../../access/mod.ts";
import type { Change, TableSchema } from "../../storage/contract.ts";
import type { Name, Statement } from "../ast.ts";
import type { BoundStatement, UnitCount } from "../plan.ts";
import { at, name } from "../tree-nodes.ts";
import { type ColumnChange, symbolColumn } from "./alter-column.ts";
import { onlyName } from "./names.ts";
import { limitOfWords, unitCount, type WrittenRefresh } from "./refresh-rule.ts";
import { done, type StatementKind } from "./statement.ts";
import { parseTtl, type WrittenTtl } from "./table-options.ts";

type ViewChange =
  | { set: "ttl"; ttl: WrittenTtl }
  | { set: "limit"; limit: UnitCount }
  | { set: "refresh"; refresh: WrittenRefresh }
  | { set: "nothing" }
  | { set: "column"; column: Name; change: ColumnChange };

interface AlterMaterializedView extends Statement {
  kind: "alterMaterializedView";
  view: Name;
  change: ViewChange;
}

interface BoundAlterMaterializedView extends BoundStatement<never> {
  kind: "alterMaterializedView";
  /** Undefined if there is nothing to change. */
  change?: Change;
}

const PERMISSION: Permission = "ALTER MATERIALIZED VIEW";

export const alterMaterializedView: StatementKind<AlterMaterializedView, BoundAlterMaterializedView> = {
  kind: "alterMaterializedView",
  form: {
    words: ["ALTER MATERIALIZED"],
    grammar: String.raw`
  alterMaterializedView = "ALTER" "MATERIALIZED" "VIEW" tableName viewChange
  viewChange = "SET" "TTL" ttl                               -- ttl
             | "SET" "REFRESH" "LIMIT" "<number>" name       -- limitWords
             | "SET" "REFRESH" "LIMIT" anyNumber             -- limit
             | "SET" refreshRule                             -- refresh
             | "RESUME" "WAL"                                -- resume
             | "ALTER" "COLUMN" columnName symbolChange      -- column`,
    actions: {
      alterMaterializedView: (alter, _materialized, _view, table, change): AlterMaterializedView => ({
        kind: "alterMaterializedView",
        at: at(alter),
        view: onlyName(table.tree()),
        change: change.tree(),
      }),
      viewChange_ttl: (_set, _ttl, ttl): ViewChange => ({ set: "ttl", ttl: { at: at(ttl), text: ttl.tree() } }),
      viewChange_limit: (_set, _refresh, _limit, limit): ViewChange => ({ set: "limit", limit: unitCount(limit, 0) }),
      viewChange_limitWords: (_set, _refresh, _limit, number, unit): ViewChange => ({
        set: "limit",
        limit: limitOfWords(number, unit),
      }),
      viewChange_refresh: (_set, refresh): ViewChange => ({ set: "refresh", refresh: refresh.tree() }),
      viewChange_resume: (_resume, _wal): ViewChange => ({ set: "nothing" }),
      viewChange_column: (_alter, _column, column, change): ViewChange => ({
        set: "column",
        column: name(column),
        change: change.tree(),
      }),
    },
  },
  reference: {
    syntax: `ALTER MATERIALIZED VIEW view SET TTL n unit
ALTER MATERIALIZED VIEW view SET REFRESH LIMIT n unit
ALTER MATERIALIZED VIEW view SET REFRESH [IMMEDIATE | MANUAL | EVERY n unit [START 'time' [TIME ZONE 'zone']]] [PERIOD (…)]
ALTER MATERIALIZED VIEW view RESUME WAL
ALTER MATERIALIZED VIEW view ALTER COLUMN column ADD INDEX [CAPACITY n] | DROP INDEX | CACHE | NOCACHE | SYMBOL CAPACITY n`,
    summary:
      "With `SET REFRESH LIMIT`, refreshes do not change rows that are this much older than the newest row of the base table; `0h` removes the limit. `RESUME WAL` has nothing to do here.",
  },
  category: "ddl",
  requires: [PERMISSION],

  bind({ view, change }, { binding }) {
    const { schema } = binding.materialized(view);
    binding.requires.add(PERMISSION, view.at, schema);
    return { kind: "alterMaterializedView", change: changeOf(change, schema, () => binding.now()) };
  },

  async execute({ change }, run) {
    if (change === undefined) return done("ddl", PERMISSION);
    await run.define(change);
    return run.defined(PERMISSION);
  },
};

function changeOf(change: ViewChange, schema: TableSchema, nowMicros: () => bigint): Change | undefined {
  const { id: tableId, materialized } = schema;
  if (change.set === "nothing") return undefined;
  if (change.set === "ttl") {
    return { kind: "setOptions", tableId, options: { ttl: parseTtl(change.ttl, schema.partitionBy) ?? null } };
  }
  if (change.set === "column") {
    const { id: columnId } = symbolColumn(schema, change.column);
    return { kind: "setColumn", tableId, columnId, options: change.change.options };
  }
  const changed = change.set === "refresh"
    ? { refresh: change.refresh(nowMicros, materialized!.samplings[0]!) }
    : { limit: change.limit.count === 0 ? undefined : change.limit };
  return { kind: "setOptions", tableId, options: { materialized: { ...materialized!, ...changed } } };
}
