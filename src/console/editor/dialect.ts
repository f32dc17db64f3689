/** Highlighting: the keywords, types and functions that the server knows. */
import { sql, SQLDialect } from "@codemirror/lang-sql";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import type { Extension } from "@codemirror/state";
import { tags } from "@lezer/highlight";
import type { Language } from "../server/client.ts";

export function highlighting({ functions, keywords, types }: Language): Extension {
  const names = new Set(functions.map(({ name }) => name).filter((name) => !keywords.includes(name)));
  const dialect = SQLDialect.define({
    keywords: keywords.join(" "),
    types: types.join(" ").toLowerCase(),
    builtin: [...names].join(" "),
    doubleQuotedStrings: false,
    operatorChars: "*+-%<>!=&|~^/:",
    identifierQuotes: '"',
  });
  return [sql({ dialect }).language, syntaxHighlighting(STYLE)];
}

const STYLE = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--keyword)", fontWeight: "600" },
  { tag: tags.typeName, color: "var(--type)" },
  { tag: tags.standard(tags.name), color: "var(--function)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--string)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--number)" },
  { tag: [tags.lineComment, tags.blockComment], color: "var(--faint)", fontStyle: "italic" },
]);
