import { SqlError } from "../../errors.ts";
import type { Name, Statement } from "../ast.ts";
import { NO_NAMES } from "../binder/context.ts";
import { columns } from "../binder/metadata.ts";
import { boundView } from "../binder/views.ts";
import { at } from "../tree-nodes.ts";
import { onlyName } from "./names.ts";
import { showKind } from "./show.ts";

interface ShowCreateView extends Statement {
  kind: "showCreateView";
  name: Name;
}

const COLUMNS = columns("ddl:VARCHAR");

export const showCreateView = showKind<ShowCreateView>({
  kind: "showCreateView",
  form: {
    words: ["SHOW"],
    grammar: String.raw`
  showCreateView = "SHOW" "CREATE" "VIEW" tableName`,
    actions: {
      showCreateView: (show, _create, _view, table): ShowCreateView => (
        { kind: "showCreateView", at: at(show), name: onlyName(table.tree()) }
      ),
    },
  },
  reference: { syntax: "SHOW CREATE VIEW view", summary: "A statement that creates the same view." },

  plan({ name }, queries) {
    const { binding } = queries, view = binding.context.views?.view(name.text);
    if (view === undefined) throw binding.noView(name);
    // It requires what reading the view does. One that cannot be read is shown, so that it can be mended.
    try {
      boundView(queries, view, name.at, NO_NAMES);
    } catch (error) {
      if (!(error instanceof SqlError)) throw error;
    }
    const rows = [[createViewText(view)]];
    return { node: "values", columns: COLUMNS, timestamp: -1, order: "none", rows };
  },
});

/** Returns a statement that creates the same view. */
export function createViewText({ name, text }: { name: string; text: string }): string {
  return `CREATE VIEW '${name}' AS ( \n${text}\n);`;
}
