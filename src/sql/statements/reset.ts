import type { Statement } from "../ast.ts";
import { at } from "../tree-nodes.ts";
import { sessionKind } from "./session-kind.ts";
import { settingName } from "./set.ts";

interface Reset extends Statement {
  kind: "reset";
  /** Undefined: all. */
  name?: string;
}

export const reset = sessionKind<Reset>({
  kind: "reset",
  form: {
    words: ["RESET"],
    grammar: String.raw`
  reset = "RESET" "ALL"                                  -- all
        | "RESET" path                                   -- setting`,
    actions: {
      reset_all: (first, _all): Reset => ({ kind: "reset", at: at(first) }),
      reset_setting: (first, name): Reset => ({ kind: "reset", at: at(first), name: settingName(name) }),
    },
  },
  reference: {
    syntax: "RESET setting | ALL",
    summary:
      "Over the PostgreSQL wire: gives a setting, or all, the value that the session began with. Without effect over HTTP.",
  },
  run({ name }, { connection }) {
    connection?.settings.reset(name);
    return "SET";
  },
});
