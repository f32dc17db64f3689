import { columns } from "../binder/metadata.ts";
import { showAll } from "./show.ts";
import { createTableText } from "./show-create-table.ts";

export const showCreateDatabase = showAll({
  kind: "showCreateDatabase",
  words: '"SHOW" "CREATE" "DATABASE"',
  reference: {
    syntax: "SHOW CREATE DATABASE",
    summary:
      "The statements that make all tables, a row for each: run on an empty database, they make the same schema.",
  },
  columns: columns("ddl:VARCHAR"),
  rows: ({ catalogue }) =>
    catalogue.tables().toSorted((a, b) => a.schema.name < b.schema.name ? -1 : 1)
      .map((table) => [createTableText(table)]),
});
