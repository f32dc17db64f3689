import { SqlError, SQLSTATE } from "../../errors.ts";
import { isConvertible } from "../../types/conversion.ts";
import type { Name, Statement } from "../ast.ts";
import { typeMismatch } from "../binder/context.ts";
import { displayName } from "../binder/types.ts";
import type { BoundStatement, NewColumn } from "../plan.ts";
import { at, given, lastAt, many, name } from "../tree-nodes.ts";
import { type ColumnDefinition, newColumn } from "./columns.ts";
import { findColumn, onlyName } from "./names.ts";
import type { StatementKind } from "./statement.ts";

interface AlterColumnType extends Statement {
  kind: "alterColumnType";
  table: Name;
  definition: ColumnDefinition;
  /** Position of the last word, where QuestDB reports that the type cannot be had. */
  lastAt: number;
}

export interface BoundAlterColumnType extends BoundStatement<never> {
  kind: "alterColumnType";
  tableId: number;
  columnId: number;
  column: NewColumn;
  at: number;
}

export const alterColumnType: StatementKind<AlterColumnType, BoundAlterColumnType> = {
  kind: "alterColumnType",
  form: {
    words: ["ALTER"],
    grammar: String.raw`
  alterColumnType = "ALTER" "TABLE" tableName "ALTER" "COLUMN" columnName "TYPE" type columnOption*`,
    actions: {
      alterColumnType(alter, _table, table, _alter, _column, column, _type, type, options): AlterColumnType {
        const definition: ColumnDefinition = { name: name(column), type: type.tree() };
        if (given(options)) definition.optionAt = at(options.child(0));
        Object.assign(definition, ...many<object>(options));
        return {
          kind: "alterColumnType",
          at: at(alter),
          table: onlyName(table.tree()),
          definition,
          lastAt: lastAt(given(options) ? options : type),
        };
      },
    },
  },
  reference: {
    syntax: "ALTER TABLE table ALTER COLUMN column TYPE type [CAPACITY n] [CACHE | NOCACHE] [INDEX [CAPACITY n]]",
    summary:
      "Converts the values of a column to another type. Numbers, BOOLEAN and times can be converted to each other; these, UUID, IPv4 and CHAR to " +
      "texts (STRING, VARCHAR and SYMBOL) and back; texts to other texts; integers and DECIMALs to DECIMALs that can represent all their values. " +
      "Integers that are too large lose their high bits, and fractions are cut. Other values that do not fit become NULL, or 0 or false in types " +
      "without NULL. The options are for SYMBOL. The designated timestamp cannot be converted. Rows can be read, added and changed meanwhile. " +
      "Detached partitions are converted, too. Not allowed in a transaction.",
  },
  category: "ddl",
  requires: ["ALTER COLUMN TYPE"],
  notInTransaction: "ALTER COLUMN TYPE",

  bind({ table, definition, lastAt }, { binding }) {
    const { schema } = binding.table(table);
    const known = findColumn(schema, definition.name);
    binding.requires.ofColumns("ALTER COLUMN TYPE", table.at, schema).use(
      known.id,
      definition.name.text,
      definition.name.at,
    );
    const column = { ...newColumn(definition), name: known.name };
    if (known.id === schema.timestampId) {
      throw new SqlError("the type of the designated timestamp cannot be changed", lastAt, SQLSTATE.invalidParameter);
    }
    const [from, to] = [known.type, column.type].map(displayName);
    if (known.type === column.type) {
      throw new SqlError(`column ${known.name} already has the type ${to}`, lastAt, SQLSTATE.invalidParameter);
    }
    if (!isConvertible(known.type, column.type)) {
      throw typeMismatch(`column ${known.name} cannot be converted from ${from} to ${to}`, lastAt);
    }
    return { kind: "alterColumnType", tableId: schema.id, columnId: known.id, column, at: table.at };
  },

  async execute(bound, run) {
    await run.changeType(bound);
    return run.defined("ALTER TABLE");
  },
};
