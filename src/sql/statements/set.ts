import type { Name, Statement } from "../ast.ts";
import { isWord } from "../lexer.ts";
import { at, given, type Node, optional, token, word, written } from "../tree-nodes.ts";
import { sessionKind } from "./session-kind.ts";

interface Value {
  text: string;
  at: number;
  /** DEFAULT: back to what the session began with. */
  isDefault: boolean;
}

interface SetStatement extends Statement {
  kind: "set";
  /** Undefined for forms that are accepted without effect. */
  setting?: { name: string; value: Value; isLocal: boolean };
}

export const set = sessionKind<SetStatement>({
  kind: "set",
  form: {
    words: ["SET"],
    grammar: String.raw`
  set = "SET" settingScope? path ("=" | "TO") settingValue  -- setting
      | "SET" settingScope? ignoredSetting any*          -- ignored
  settingScope = ("SESSION" | "LOCAL") &name
  settingValue = settingItem ("," settingItem)*
  settingItem = "-"? anyNumber                           -- number
              | ("<string>" | name | "TRUE" | "FALSE" | "ON")  -- word
  ignoredSetting = "TRANSACTION" | "CHARACTERISTICS" | "AUTHORIZATION" | "CONSTRAINTS" | "ROLE" | "NAMES" | "SCHEMA"
                 | "TIME"`,
    actions: {
      set_setting(first, scope, name, _is, value): SetStatement {
        const isLocal = optional(scope) === "local";
        return { kind: "set", at: at(first), setting: { name: settingName(name), value: value.tree(), isLocal } };
      },
      set_ignored(first, _scope, _setting, _rest): SetStatement {
        return { kind: "set", at: at(first) };
      },
      settingScope: (scope, _name) => word(scope),
      settingValue(first, _commas, rest): Value {
        const isOneToken = !given(rest) && first.source.contents.length === 1;
        // A list is kept as it is written.
        const text = isOneToken ? token(first).text : written(this);
        return { text, at: at(first), isDefault: isOneToken && isWord(token(first), "DEFAULT") };
      },
    },
  },
  reference: {
    syntax: "SET [SESSION | LOCAL] setting = value | TO value",
    summary:
      "Over the PostgreSQL wire: a [setting](postgres.md#settings) of the session, or with LOCAL of the transaction; " +
      "`DEFAULT` is the value that the session began with. Without effect over HTTP, and so are `SET TRANSACTION`, " +
      "`SET NAMES` and the like.",
  },
  run({ setting }, { connection }) {
    if (setting === undefined || connection === undefined) return "SET";
    const { name, value, isLocal } = setting;
    if (value.isDefault) connection.settings.reset(name);
    else connection.settings.set(name, value.text, { isLocal, at: value.at });
    return "SET";
  },
});

/** `my.setting`, in lower case. */
export function settingName(path: Node): string {
  return (path.tree() as Name[]).map(({ text }) => text.toLowerCase()).join(".");
}
