/** Functions by which scripts for QuestDB wait for the server, refresh what it has cached, or cancel a query. */
import { SqlError, SQLSTATE } from "../../errors.ts";
import { batchEntry } from "./batch-entry.ts";
import type { FunctionEntry } from "./entry.ts";

const EVERY_TABLE = "*";

export const serverCalls: FunctionEntry[] = [
  batchEntry(
    "wait_wal_table",
    [{ name: "table", type: "text", constant: true }],
    "BOOLEAN",
    "True at once: rows that are acknowledged are visible. Fails if there is no such table.",
    undefined,
    [],
    {
      volatility: "volatile",
      served: (server, [table], at) => {
        if (!server.hasTable(String(table))) throw noTable(String(table), at);
        return true;
      },
    },
  ),
  batchEntry(
    "flush_query_cache",
    [],
    "BOOLEAN",
    "True at once: compiled statements are bound again after each change that concerns them.",
    (_, out, rowCount) => out.values.fill(1, 0, rowCount),
    [["flush_query_cache()", true]],
    { volatility: "volatile" },
  ),
  batchEntry(
    "hydrate_table_metadata",
    [{ name: "table", type: "text", constant: true, variadic: true }],
    "BOOLEAN",
    "True at once: metadata is always current. Fails if none of the tables exists; `'*'` names all.",
    undefined,
    [],
    {
      volatility: "volatile",
      served: (server, tables, at) => {
        const names = tables.map(String);
        if (!names.some((name) => name === EVERY_TABLE || server.hasTable(name))) throw noTable(names.join(", "), at);
        return true;
      },
    },
  ),
  batchEntry(
    "cancel_query",
    [{ name: "id", type: "LONG" }],
    "BOOLEAN",
    "Cancels the statement with this number in `query_activity()`, as CANCEL QUERY does. False if there is none. `id` may be a column. " +
      "In WHERE, the function is called only for rows that the other conditions accept. It never cancels the statement that calls it.",
    undefined,
    [],
    {
      volatility: "volatile",
      check: ([id]) =>
        id === undefined || id !== null && Number(id) >= 0
          ? undefined
          : { argument: 0, message: "expected the number of a query: see query_activity()" },
      served: (server, [id], at) => server.cancelQuery(Number(id), at),
    },
  ),
];

function noTable(name: string, at: number): SqlError {
  return new SqlError(`table ${name} does not exist`, at, SQLSTATE.undefinedTable);
}
