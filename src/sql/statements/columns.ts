/** Column definitions of CREATE TABLE and ALTER TABLE: `name type options`. */
import { SqlError, SQLSTATE } from "../../errors.ts";
import type { Name, TypeName } from "../ast.ts";
import { typeMismatch } from "../binder/context.ts";
import { tagOfType } from "../binder/types.ts";
import { tagOfName } from "../../types/mod.ts";
import { definitionHint, typeHint } from "../other-dialects.ts";
import type { NewColumn } from "../plan.ts";
import { at, given, many, name, optional, wholeNumber } from "../tree-nodes.ts";
import { capacityOf, indexCapacityOf, type IndexOption } from "./index-option.ts";
import { checkColumnName } from "./names.ts";
import { checkParquetOption, type ParquetOption } from "./parquet-option.ts";
import type { Form } from "./statement.ts";

export interface ColumnDefinition {
  name: Name;
  type: TypeName;
  /** `symbol capacity 128 nocache index capacity 256`. */
  symbolCapacity?: number;
  symbolCached?: boolean;
  index?: IndexOption;
  parquet?: ParquetOption;
  /** Positions of the first option and of the capacity. */
  optionAt?: number;
  symbolCapacityAt?: number;
}

export const columnParts: Pick<Form, "grammar" | "actions"> = {
  grammar: String.raw`
  columnDefinition = columnName type columnOption*
  columnOption = "CAPACITY" "<number>"                   -- capacity
               | "CACHE"                                 -- cache
               | "NOCACHE"                               -- nocache
               | "INDEX" indexOption?                    -- index
               | parquetOption                           -- parquet
               | "NOT" "NULL"                            -- notNull
               | "NULL"                                  -- null`,
  actions: {
    columnDefinition(columnName, type, options): ColumnDefinition {
      const definition: ColumnDefinition = { name: name(columnName), type: type.tree() };
      if (given(options)) definition.optionAt = at(options.child(0));
      return Object.assign(definition, ...many<object>(options));
    },
    columnOption_capacity(_capacity, number) {
      return { symbolCapacity: wholeNumber(number), symbolCapacityAt: at(number) };
    },
    columnOption_cache(_cache) {
      return { symbolCached: true };
    },
    columnOption_nocache(_nocache) {
      return { symbolCached: false };
    },
    columnOption_index(_index, option) {
      return { index: optional<IndexOption>(option) ?? {} };
    },
    columnOption_parquet(parquet) {
      return { parquet: parquet.tree() };
    },
    columnOption_notNull(_not, _null) {
      return {};
    },
    columnOption_null(_null) {
      return {};
    },
  },
};

const CAPACITY_MAX = 1073741824;

/** Names of PostgreSQL's types that are only allowed in casts. Columns use the dialect's own names. */
const CAST_ONLY = new Set(["bool", "int2", "int4", "int8", "float4", "float8", "timestamptz"]);

export function newColumn(definition: ColumnDefinition): NewColumn {
  checkColumnName(definition.name);
  if (CAST_ONLY.has(definition.type.name)) {
    throw new SqlError(
      `there is no type ${definition.type.name} for a column${typeHint(definition.type.name) ?? ""}`,
      definition.type.at,
      SQLSTATE.undefinedFunction,
    );
  }
  const foreign = definitionHint(definition.name.text, definition.type.name);
  if (foreign !== undefined && tagOfName(definition.type.name) === undefined) {
    throw new SqlError(foreign, definition.name.at, SQLSTATE.syntax);
  }
  const type = tagOfType(definition.type);
  const { symbolCapacity, symbolCached, index, parquet } = definition;
  if (type !== "SYMBOL" && (symbolCapacity !== undefined || symbolCached !== undefined || index !== undefined)) {
    throw new SqlError(
      "CAPACITY, CACHE and INDEX are only for SYMBOL columns",
      definition.optionAt ?? definition.type.at,
      SQLSTATE.syntax,
    );
  }
  if (symbolCapacity !== undefined) {
    checkSymbolCapacity(symbolCapacity, definition.symbolCapacityAt ?? definition.type.at);
  }
  if (parquet !== undefined) checkParquetOption(parquet, type);
  if (type === "INTERVAL") throw typeMismatch("a column cannot have the type INTERVAL", definition.type.at);
  return {
    name: definition.name.text,
    type,
    indexed: index !== undefined,
    symbolCapacity: type === "SYMBOL" ? capacityOf(definition.symbolCapacity) : 0,
    symbolCached: type === "SYMBOL" && definition.symbolCached !== false,
    indexCapacity: index && indexCapacityOf(index),
  };
}

export function checkSymbolCapacity(capacity: number, at: number): void {
  if (capacity >= 2 && capacity <= CAPACITY_MAX) return;
  throw new SqlError(`the capacity must be between 2 and ${CAPACITY_MAX}`, at, SQLSTATE.invalidParameter);
}
