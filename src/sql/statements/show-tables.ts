import type { Statement } from "../ast.ts";
import { metadataPlan } from "../binder/metadata.ts";
import { at } from "../tree-nodes.ts";
import { showKind } from "./show.ts";

export const showTables = showKind<Statement>({
  kind: "showTables",
  form: {
    words: ["SHOW"],
    grammar: String.raw`
  showTables = "SHOW" "TABLES"`,
    actions: {
      showTables: (show, _tables) => ({ kind: "showTables", at: at(show) }),
    },
  },
  reference: { syntax: "SHOW TABLES", summary: "The names of all tables." },
  plan: ({ at }) => metadataPlan("show_tables", [], at),
});
