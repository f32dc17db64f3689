import { SqlError } from "../../errors.ts";
import type { TableSnapshot } from "../../storage/contract.ts";
import { typeName, type Value } from "../../types/mod.ts";
import { TABLE_COLUMNS } from "../binder/metadata.ts";
import { viewColumns } from "../binder/views.ts";
import { isMark, isWord, type Token } from "../lexer.ts";
import { reservedWord } from "../token-classes.ts";
import { type ShowOfTable, showOfTable } from "./show.ts";

const kind = "showColumns";

export const showColumns = showOfTable({
  kind,
  words: '"SHOW" "COLUMNS" "FROM"',
  reader: {
    words: ["DESCRIBE", "DESC"],
    /** DESCRIBE [TABLE] name. Undefined if the statement reads a table of that name. */
    read(tokens, from, to): ShowOfTable | undefined {
      let at = isWord(tokens[from + 1], "TABLE") ? from + 2 : from + 1;
      if (at + 2 < to && isWord(tokens[at], "PUBLIC") && isMark(tokens[at + 1], ".")) at += 2;
      const name = tokens[at];
      if (at + 1 !== to || name === undefined || !isName(name)) {
        const isQuery = isWord(tokens[at], "SELECT", "WITH", "DECLARE") || isMark(tokens[at], "(");
        if (isQuery || (at + 1 < to && isMark(tokens[at + 1], "("))) {
          throw new SqlError("DESCRIBE takes the name of a table", tokens[at]!.at);
        }
        return undefined;
      }
      return { kind, at: tokens[from]!.at, table: { text: name.text, at: name.at, quoted: name.kind !== "word" } };
    },
  },
  reference: {
    syntax: `SHOW COLUMNS FROM table
DESCRIBE [TABLE] table, DESC [TABLE] table`,
    summary: "The columns of a table, with their types, indexes and symbols.",
  },
  columns: () => TABLE_COLUMNS,
  rows: columnRows,
  ofView: viewColumns,
});

function isName({ kind, text }: Token): boolean {
  return kind === "quoted" || kind === "string" || (kind === "word" && reservedWord(text) === undefined);
}

/** Shown for SYMBOL columns, with or without an index, unless CREATE TABLE gave a capacity. */
export const INDEX_BLOCK_CAPACITY = 256;

/** The rows of SHOW COLUMNS and table_columns(). */
export function columnRows(table: TableSnapshot): Value[][] {
  const { schema } = table;
  return schema.columns.map((column) => {
    const isSymbol = column.type === "SYMBOL";
    return [
      column.name,
      typeName(column.type),
      column.indexed,
      isSymbol ? column.indexCapacity ?? INDEX_BLOCK_CAPACITY : 0,
      isSymbol && column.symbolCached,
      isSymbol ? column.symbolCapacity : 0,
      isSymbol ? symbolTableSize(table, column.id) : 0,
      column.id === schema.timestampId,
      schema.dedupKeys.includes(column.id),
    ];
  });
}

/** The number of symbols, plus one if there are nulls. */
function symbolTableSize(table: TableSnapshot, columnId: number): number {
  const { dictionaries: [dictionary], segments } = table.source([columnId]);
  const hasNulls = Iterator.from(segments).some(({ chunks: [chunk], rowCount }) =>
    rowCount > 0 && chunk?.stats.nullCount !== 0
  );
  return (dictionary?.count ?? 0) + (hasNulls ? 1 : 0);
}
