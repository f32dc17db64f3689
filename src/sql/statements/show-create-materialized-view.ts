import type { Name, Statement } from "../ast.ts";
import { columns } from "../binder/metadata.ts";
import { at } from "../tree-nodes.ts";
import { onlyName } from "./names.ts";
import { createMaterializedText } from "./refresh-rule.ts";
import { showKind } from "./show.ts";

interface ShowCreateMaterializedView extends Statement {
  kind: "showCreateMaterializedView";
  name: Name;
}

const COLUMNS = columns("ddl:VARCHAR");

export const showCreateMaterializedView = showKind<ShowCreateMaterializedView>({
  kind: "showCreateMaterializedView",
  form: {
    words: ["SHOW"],
    grammar: String.raw`
  showCreateMaterializedView = "SHOW" "CREATE" "MATERIALIZED" "VIEW" tableName`,
    actions: {
      showCreateMaterializedView: (show, _create, _materialized, _view, table): ShowCreateMaterializedView => (
        { kind: "showCreateMaterializedView", at: at(show), name: onlyName(table.tree()) }
      ),
    },
  },
  reference: {
    syntax: "SHOW CREATE MATERIALIZED VIEW view",
    summary: "A statement that creates the same materialized view.",
  },

  plan({ name }, { binding }) {
    const { schema } = binding.materialized(name);
    binding.requires.ofColumns("SELECT", name.at, schema).useTable();
    const rows = [[createMaterializedText(schema, schema.materialized!)]];
    return { node: "values", columns: COLUMNS, timestamp: -1, order: "none", rows };
  },
});
