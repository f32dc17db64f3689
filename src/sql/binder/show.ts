/**
 * SHOW: metadata as rows, and what the session is.
 */
import { SqlError } from "../../errors.ts";
import { didYouMean } from "../../nearest.ts";
import type { OtherStatement as Statement } from "../ast.ts";
import { settingNames, settingOf, settingsOf } from "../client-settings.ts";
import type { Plan } from "../plan.ts";
import type { Binding } from "./context.ts";
import { metadataPlan } from "./metadata.ts";

type Show = Extract<Statement, { kind: "show" }>;

const OF_TABLE: Record<string, string> = {
  "columns": "show_columns",
  "partitions": "show_partitions",
  "create table": "show_create_table",
};

export function showPlan(binding: Binding, show: Show): Plan {
  const what = show.what.toLowerCase();
  const ofTable = OF_TABLE[what];
  if (ofTable !== undefined) {
    if (show.table === undefined) {
      throw new SqlError(`SHOW ${what.toUpperCase()} wants a table`, show.whatAt + show.what.length);
    }
    const { schema } = binding.table(show.table);
    binding.requires.ofColumns("SELECT", show.table.at, schema).useTable();
    return metadataPlan(ofTable, [schema.name], show.table.at);
  }
  if (what === "tables") return metadataPlan("show_tables", [], show.at);
  if (what === "parameters") return metadataPlan("show_parameters", [], show.at);
  const session = binding.sessionValues();
  if (what === "all") {
    const columns = ["name", "setting", "description"].map((name) => ({ name, type: "STRING" }));
    const rows = settingsOf(session).map(({ name, value, summary }) => [name, String(value), summary]);
    return { node: "values", columns, rows, timestamp: -1, order: "none" };
  }
  const setting = settingOf(what, session);
  if (setting === undefined) {
    const known = [...Object.keys(OF_TABLE), "tables", "parameters", "all", ...settingNames(session)];
    const hint = didYouMean(show.what, known);
    throw new SqlError(`SHOW does not know ${show.what}${hint}`, show.whatAt + show.what.length);
  }
  const { name, value, type } = setting;
  return { node: "values", columns: [{ name, type }], rows: [[value]], timestamp: -1, order: "none" };
}
