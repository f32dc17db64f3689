import { SqlError, SQLSTATE } from "../../errors.ts";
import type { Name, Statement } from "../ast.ts";
import type { BoundStatement, Refresh } from "../plan.ts";
import { at } from "../tree-nodes.ts";
import { onlyName } from "./names.ts";
import { microsOf } from "./refresh-rule.ts";
import { done, type StatementKind } from "./statement.ts";

interface RefreshMaterializedView extends Statement {
  kind: "refreshMaterializedView";
  name: Name;
  refresh: Refresh;
}

interface BoundRefreshMaterializedView extends BoundStatement<never> {
  kind: "refreshMaterializedView";
  tableId: number;
  refresh: Refresh;
}

const TAG = "REFRESH MATERIALIZED VIEW";

export const refreshMaterializedView: StatementKind<RefreshMaterializedView, BoundRefreshMaterializedView> = {
  kind: "refreshMaterializedView",
  form: {
    words: ["REFRESH MATERIALIZED"],
    grammar: String.raw`
  refreshMaterializedView = "REFRESH" "MATERIALIZED" "VIEW" tableName refreshOf
  refreshOf = "FULL"                                             -- full
            | "INCREMENTAL"                                      -- incremental
            | "RANGE" "FROM" "<string>" "TO" "<string>"          -- range`,
    actions: {
      refreshMaterializedView: (refresh, _materialized, _view, table, of): RefreshMaterializedView => ({
        kind: "refreshMaterializedView",
        at: at(refresh),
        name: onlyName(table.tree()),
        refresh: of.tree(),
      }),
      refreshOf_full: (_full): Refresh => ({ kind: "full" }),
      refreshOf_incremental: (_incremental): Refresh => ({ kind: "incremental" }),
      refreshOf_range(_range, _from, from, _to, to): Refresh {
        const fromMicros = microsOf(from), toMicros = microsOf(to);
        if (fromMicros > toMicros) {
          throw new SqlError("the range ends before it begins", at(to), SQLSTATE.invalidParameter);
        }
        return { kind: "range", fromMicros, toMicros };
      },
    },
  },
  reference: {
    syntax: `${TAG} view FULL
${TAG} view INCREMENTAL
${TAG} view RANGE FROM 'time' TO 'time'`,
    summary:
      "Begins to refresh a materialized view and does not wait for it: all rows, those whose base rows have changed, or those between two times. " +
      "`FULL` makes an invalid view valid again.",
  },
  category: "ddl",
  requires: [TAG],
  notInTransaction: TAG,

  bind({ name, refresh }, { binding }) {
    const { schema } = binding.materialized(name);
    binding.requires.add(TAG, name.at, schema);
    return { kind: "refreshMaterializedView", tableId: schema.id, refresh };
  },

  execute({ tableId, refresh }, run) {
    run.services.materialized.refresh(tableId, refresh);
    return done("ddl", TAG);
  },
};
