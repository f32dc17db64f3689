/** ALTER TABLE … CONVERT PARTITION: all partitions are native, so TO NATIVE has nothing to do, and TO PARQUET is refused. */
import { SqlError, SQLSTATE } from "../../errors.ts";
import type { Expression, Name, Statement } from "../ast.ts";
import type { BoundStatement } from "../plan.ts";
import { at, word } from "../tree-nodes.ts";
import { checkPartitionName, type Listed, partitionsWhere } from "./alter-partitions.ts";
import { onlyName } from "./names.ts";
import { done, type StatementKind } from "./statement.ts";

interface ConvertPartitions extends Statement {
  kind: "convertPartitions";
  table: Name;
  /** Offset of the word PARTITION. */
  partitionAt: number;
  format: { at: number; text: string };
  which: Listed[] | Expression;
}

export const convertPartitions: StatementKind<
  ConvertPartitions,
  BoundStatement<never> & { kind: "convertPartitions" }
> = {
  kind: "convertPartitions",
  form: {
    words: ["ALTER"],
    grammar: String.raw`
  convertPartitions = "ALTER" "TABLE" tableName "CONVERT" "PARTITION" "TO" ("PARQUET" | "NATIVE") partitions`,
    actions: {
      convertPartitions(alter, _table, table, _convert, partition, _to, format, which): ConvertPartitions {
        return {
          kind: "convertPartitions",
          at: at(alter),
          table: onlyName(table.tree()),
          partitionAt: at(partition),
          format: { at: at(format), text: word(format) },
          which: which.tree(),
        };
      },
    },
  },
  reference: {
    syntax: "ALTER TABLE table CONVERT PARTITION TO NATIVE LIST 'name', … | WHERE condition",
    summary:
      "Accepted without effect: all partitions are native, and their columns are encoded. `TO PARQUET` is refused; `COPY (query) TO 'file'` writes Parquet files.",
  },
  category: "ddl",
  requires: ["SET STORAGE POLICY"],

  bind({ table: name, partitionAt, format, which }, queries) {
    const { binding } = queries;
    const table = binding.table(name);
    binding.requires.add("SET STORAGE POLICY", name.at, table.schema);
    if (table.schema.partitionBy === "NONE") {
      throw new SqlError("the table is not partitioned", partitionAt, SQLSTATE.invalidParameter);
    }
    if (format.text === "parquet") {
      throw new SqlError(
        "Partitions cannot become Parquet files: they are native, with encoded columns; COPY (query) TO 'file' writes Parquet files",
        format.at,
        SQLSTATE.featureNotSupported,
      );
    }
    if (!Array.isArray(which)) partitionsWhere(table, which, queries);
    else for (const listed of which) checkPartitionName(listed, table.schema.partitionBy);
    return { kind: "convertPartitions" };
  },

  execute: () => done("ddl", "ALTER TABLE"),
};
