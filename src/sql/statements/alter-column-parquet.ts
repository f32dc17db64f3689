/** ALTER COLUMN SET PARQUET(…): how a column is stored in Parquet partitions. There are none, so it has no effect. */
import type { Name, Statement } from "../ast.ts";
import type { BoundStatement } from "../plan.ts";
import { at, name } from "../tree-nodes.ts";
import { findColumn, onlyName } from "./names.ts";
import { checkParquetOption, type ParquetOption } from "./parquet-option.ts";
import { done, type StatementKind } from "./statement.ts";

interface SetParquet extends Statement {
  kind: "setParquet";
  table: Name;
  column: Name;
  option: ParquetOption;
}

export const setParquet: StatementKind<SetParquet, BoundStatement<never> & { kind: "setParquet" }> = {
  kind: "setParquet",
  form: {
    words: ["ALTER"],
    grammar: String.raw`
  setParquet = "ALTER" "TABLE" tableName "ALTER" "COLUMN" columnName "SET" parquetOption`,
    actions: {
      setParquet(alter, _table, table, _alter, _column, column, _set, option): SetParquet {
        return {
          kind: "setParquet",
          at: at(alter),
          table: onlyName(table.tree()),
          column: name(column),
          option: option.tree(),
        };
      },
    },
  },
  reference: {
    syntax: "ALTER TABLE table ALTER COLUMN column SET PARQUET(encoding [, codec[(level)]] [, bloom_filter])",
    summary:
      "Accepted without effect after a check of its words: QuestDB applies it to Parquet partitions, and all partitions here are native. " +
      "Encodings are `default`, `plain`, `rle_dictionary`, `delta_length_byte_array` and `delta_binary_packed`, codecs `uncompressed`, `snappy`, " +
      "`lz4_raw`, `gzip`, `brotli` and `zstd`.",
  },
  category: "ddl",
  requires: ["SET STORAGE POLICY"],

  bind({ table, column, option }, { binding }) {
    const { schema } = binding.table(table);
    binding.requires.add("SET STORAGE POLICY", table.at, schema);
    checkParquetOption(option, findColumn(schema, column).type);
    return { kind: "setParquet" };
  },

  execute: () => done("ddl", "ALTER TABLE"),
};
