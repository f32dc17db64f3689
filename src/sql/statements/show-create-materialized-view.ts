import { columns } from "../binder/metadata.ts";
import { createMaterializedText } from "./refresh-rule.ts";
import { showOfTable } from "./show.ts";

const DDL = columns("ddl:VARCHAR");

export const showCreateMaterializedView = showOfTable({
  kind: "showCreateMaterializedView",
  words: '"SHOW" "CREATE" "MATERIALIZED" "VIEW"',
  reference: {
    syntax: "SHOW CREATE MATERIALIZED VIEW view",
    summary: "A statement that creates the same materialized view.",
  },
  columns: () => DDL,
  find: (binding, name) => binding.materialized(name),
  rows: ({ schema }) => [[createMaterializedText(schema, schema.materialized!)]],
});
