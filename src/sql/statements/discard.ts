import type { Statement } from "../ast.ts";
import { at } from "../tree-nodes.ts";
import { sessionKind } from "./session-kind.ts";

interface Discard extends Statement {
  kind: "discard";
  isAll: boolean;
}

export const discard = sessionKind<Discard>({
  kind: "discard",
  form: {
    words: ["DISCARD"],
    grammar: String.raw`
  discard = "DISCARD" "ALL"                              -- all
          | "DISCARD" ("PLANS" | "SEQUENCES" | "TEMP" | "TEMPORARY")  -- nothing`,
    actions: {
      discard_all: (first, _all): Discard => ({ kind: "discard", at: at(first), isAll: true }),
      discard_nothing: (first, _what): Discard => ({ kind: "discard", at: at(first), isAll: false }),
    },
  },
  reference: {
    syntax: "DISCARD ALL | PLANS | SEQUENCES | TEMP",
    summary:
      "Over the PostgreSQL wire: `ALL` ends cursors and prepared statements and resets the settings of the session. " +
      "There is nothing else to discard.",
  },
  run({ isAll }, { connection }) {
    if (isAll && connection !== undefined) {
      connection.deallocate();
      connection.closePortals();
      connection.settings.reset();
    }
    return "SET";
  },
});
