import { isMark, isWord, type Token } from "../lexer.ts";
import { reservedWord } from "../token-classes.ts";
import { planOfTable, showKind, type ShowOfTable, showOfTable } from "./show.ts";

const kind = "showColumns";

export const showColumns = showKind<ShowOfTable>({
  kind,
  form: {
    words: ["SHOW"],
    grammar: String.raw`
  showColumns = "SHOW" "COLUMNS" "FROM" tableName`,
    actions: {
      showColumns: (show, _columns, _from, table) => showOfTable(kind, show, table),
    },
    reader: {
      words: ["DESCRIBE", "DESC"],
      /** DESCRIBE [TABLE] name. Undefined for what reads a table of that name. */
      read(tokens, from, to): ShowOfTable | undefined {
        let at = isWord(tokens[from + 1], "TABLE") ? from + 2 : from + 1;
        if (at + 2 < to && isWord(tokens[at], "PUBLIC") && isMark(tokens[at + 1], ".")) at += 2;
        const name = tokens[at];
        if (at + 1 !== to || !isName(name)) return undefined;
        return { kind, at: tokens[from].at, table: { text: name.text, at: name.at, quoted: name.kind !== "word" } };
      },
    },
  },
  reference: {
    syntax: `SHOW COLUMNS FROM table
DESCRIBE [TABLE] table, DESC [TABLE] table`,
    summary: "The columns of a table, with their types, indexes and symbols.",
  },
  plan: (show, queries) => planOfTable("show_columns", show, queries),
});

function isName({ kind, text }: Token): boolean {
  return kind === "quoted" || kind === "string" || (kind === "word" && reservedWord(text) === undefined);
}
