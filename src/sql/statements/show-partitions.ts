import { planOfTable, showKind, type ShowOfTable, showOfTable } from "./show.ts";

const kind = "showPartitions";

export const showPartitions = showKind<ShowOfTable>({
  kind,
  form: {
    words: ["SHOW"],
    grammar: String.raw`
  showPartitions = "SHOW" "PARTITIONS" "FROM" tableName`,
    actions: {
      showPartitions: (show, _partitions, _from, table) => showOfTable(kind, show, table),
    },
  },
  reference: {
    syntax: "SHOW PARTITIONS FROM table",
    summary: "The partitions of a table, with their times and sizes.",
  },
  plan: (show, queries) => planOfTable("show_partitions", show, queries),
});
