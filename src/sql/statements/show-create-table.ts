import { planOfTable, showKind, type ShowOfTable, showOfTable } from "./show.ts";

const kind = "showCreateTable";

export const showCreateTable = showKind<ShowOfTable>({
  kind,
  form: {
    words: ["SHOW"],
    grammar: String.raw`
  showCreateTable = "SHOW" "CREATE" "TABLE" tableName`,
    actions: {
      showCreateTable: (show, _create, _table, table) => showOfTable(kind, show, table),
    },
  },
  reference: { syntax: "SHOW CREATE TABLE table", summary: "The statement that makes such a table." },
  plan: (show, queries) => planOfTable("show_create_table", show, queries),
});
