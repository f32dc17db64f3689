import { noPreparedStatement } from "../../errors.ts";
import type { Statement } from "../ast.ts";
import { at } from "../tree-nodes.ts";
import { sessionKind, type SessionName, sessionNameOrAll } from "./session-kind.ts";

interface Deallocate extends Statement {
  kind: "deallocate";
  /** Undefined: all. */
  name?: SessionName;
}

export const deallocate = sessionKind<Deallocate>({
  kind: "deallocate",
  form: {
    words: ["DEALLOCATE"],
    grammar: `\n  deallocate = "DEALLOCATE" ("PREPARE" &nameOrAll)? nameOrAll`,
    actions: {
      deallocate: (first, _prepare, _ahead, name): Deallocate => ({
        kind: "deallocate",
        at: at(first),
        name: sessionNameOrAll(name),
      }),
    },
  },
  reference: {
    syntax: "DEALLOCATE [PREPARE] name | ALL",
    summary: "Ends a prepared statement of the PostgreSQL wire, or all.",
  },
  run({ name }, { connection }) {
    if (connection === undefined && name !== undefined) throw noPreparedStatement(name.text, name.at);
    connection?.deallocate(name);
    return name === undefined ? "DEALLOCATE ALL" : "DEALLOCATE";
  },
});
