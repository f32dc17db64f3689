/** Rules of the grammar that several statements share. */
import { SqlError } from "../../errors.ts";
import { at, endOf, given, matched, name, token, wholeNumber } from "../tree-nodes.ts";
import type { Form } from "./statement.ts";

export interface Setting {
  name: string;
  at: number;
  value: string;
  /** End of the value. */
  end: number;
}

export const parts: Pick<Form, "grammar" | "actions"> = {
  grammar: String.raw`
  ifExists = "IF" "EXISTS"
  nameOrAll = name | "ALL"
  ifNotExists = "IF" "NOT" "EXISTS"
  batching = "ATOMIC"                                    -- atomic
           | "BATCH" "<number>" ("O3MAXLAG" anyNumber)?  -- batch
  setting = name "=" "-"? ("<duration>" | "<number>" | "<string>" | name | "TRUE" | "FALSE")
  keys = "UPSERT" "KEYS" "(" name ("," name)* ")"
  // 3d is also a number with the suffix of doubles, so its unit may be in it.
  ttl = "<number>" ~afterTtl name                        -- unit
      | anyNumber                                        -- text
  afterTtl = "BYPASS" | "WAL" | "DEDUP" | "WITH" | "IN" | "TIMESTAMP" | "PARTITION" | "OWNED"`,
  actions: {
    batching_atomic(_atomic) {
      return undefined;
    },
    batching_batch(_batch, rows, _lagWord, _lag) {
      if (wholeNumber(rows) <= 0) throw new SqlError("BATCH takes a positive number of rows", at(rows));
      return undefined;
    },
    setting(settingName, _equals, minus, value): Setting {
      return {
        name: token(settingName).text,
        at: at(settingName),
        value: (given(minus) ? "-" : "") + token(value).text,
        end: endOf(value),
      };
    },
    keys(_upsert, _keys, _open, first, _commas, rest, _close) {
      return [first, ...rest.children].map(name);
    },
    ttl_unit(number, unit) {
      return matched.source.text.slice(at(number), endOf(unit));
    },
    ttl_text(number) {
      return token(number).text;
    },
  },
};
