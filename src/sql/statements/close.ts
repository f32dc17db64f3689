import { noPortal } from "../../errors.ts";
import type { Statement } from "../ast.ts";
import { at } from "../tree-nodes.ts";
import { sessionKind, type SessionName, sessionNameOrAll } from "./session-kind.ts";

interface Close extends Statement {
  kind: "close";
  /** Undefined: all. */
  name?: SessionName;
}

export const close = sessionKind<Close>({
  kind: "close",
  form: {
    words: ["CLOSE"],
    grammar: `\n  close = "CLOSE" nameOrAll`,
    actions: {
      close: (first, name): Close => ({ kind: "close", at: at(first), name: sessionNameOrAll(name) }),
    },
  },
  reference: {
    syntax: "CLOSE name | ALL",
    summary: "Ends a portal (cursor) of the PostgreSQL wire, or all.",
  },
  run({ name }, { connection }) {
    if (connection === undefined && name !== undefined) throw noPortal(name.text, name.at);
    connection?.closePortals(name);
    return "SET";
  },
});
