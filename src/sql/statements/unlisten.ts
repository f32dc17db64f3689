import type { Statement } from "../ast.ts";
import { at } from "../tree-nodes.ts";
import { sessionKind } from "./session-kind.ts";

/** Drivers send it when a connection returns to its pool. */
export const unlisten = sessionKind<Statement & { kind: "unlisten" }>({
  kind: "unlisten",
  form: {
    words: ["UNLISTEN"],
    grammar: `\n  unlisten = "UNLISTEN" ("*" | name)`,
    actions: { unlisten: (first, _channel) => ({ kind: "unlisten", at: at(first) }) },
  },
  reference: { syntax: "UNLISTEN name | *", summary: "Accepted without effect: there are no notifications." },
  run: () => "SET",
});
