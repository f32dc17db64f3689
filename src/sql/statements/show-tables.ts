import { columns } from "../binder/metadata.ts";
import { showAll } from "./show.ts";

export const showTables = showAll({
  kind: "showTables",
  words: '"SHOW" "TABLES"',
  reference: { syntax: "SHOW TABLES", summary: "The names of all tables." },
  columns: columns("table_name:STRING"),
  rows: ({ userTables, views }) =>
    [...userTables().map(({ schema }) => schema.name), ...views.all().map(({ name }) => name)].sort().map((
      name,
    ) => [name]),
});
