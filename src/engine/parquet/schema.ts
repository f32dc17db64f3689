/**
 * Maps a file's schema, a tree, to columns: each leaf is one column, fields of structs are `struct.field`, lists of
 * numbers are arrays. Unsupported types are omitted, with the reason.
 * @see https://github.com/apache/parquet-format/blob/master/LogicalTypes.md
 */
import type { SchemaElement } from "hyparquet";
import { DECIMAL_PRECISION_MAX, decimalTag, geohashTag } from "../../types/wide.ts";
import * as conversions from "./conversion.ts";
import type { Conversion } from "./conversion.ts";
import { ParquetError } from "./error.ts";

export interface ParquetColumn {
  name: string;
  type: string;
  conversion: Conversion;
  /** Ordinal among the leaves, and thus in each row group. */
  leaf: number;
  /** The definition level of a non-null value; 0: no value is null. */
  definitionMax: number;
  /** For arrays: the definition level of an element, for each dimension. Empty for other columns. */
  dimensions: number[];
}

/** A column of an unsupported type. */
export interface LeftOut {
  name: string;
  /** In terms of the file: `LIST of STRING`. */
  type: string;
}

export interface ParquetSchema {
  columns: ParquetColumn[];
  leftOut: LeftOut[];
  leafCount: number;
}

interface Node {
  element: SchemaElement;
  children: Node[];
  /** Ordinal among the leaves. */
  leaf: number;
}

const DEPTH_MAX = 100, DIMENSIONS_MAX = 32;
/** With the names of the structs around a column. */
const NAME_LENGTH_MAX = 1_024;

/**
 * @param questdb QuestDB's metadata, if there are any
 * @throws {ParquetError} if the elements do not form a tree.
 */
export function schemaOf(elements: readonly SchemaElement[], questdb: string | undefined): ParquetSchema {
  const { root, leafCount } = treeOf(elements);
  const columns: ParquetColumn[] = [], leftOut: LeftOut[] = [];
  const names = new Set<string>(), nextNumbers = new Map<string, number>();
  const unique = (name: string): string => {
    if (name.length > NAME_LENGTH_MAX) {
      throw new ParquetError(
        `the name of a column has ${name.length} characters: at most ${NAME_LENGTH_MAX} are allowed`,
      );
    }
    const lower = name.toLowerCase();
    let free = name;
    for (let n = nextNumbers.get(lower) ?? 1; names.has(free.toLowerCase()); n++) {
      free = `${name}${n}`;
      nextNumbers.set(lower, n + 1);
    }
    names.add(free.toLowerCase());
    return free;
  };
  const refuse = (name: string, node: Node) => leftOut.push({ name: unique(name), type: describe(node) });
  const visit = (node: Node, name: string, level: number, hint: number | undefined): void => {
    const { element, children } = node;
    const { repetition_type: repetition } = element;
    if (children.length > 0 && repetition !== "REPEATED" && !isList(element) && !isMap(element)) {
      const inner = level + (repetition === "OPTIONAL" ? 1 : 0);
      for (const child of children) visit(child, `${name}.${child.element.name}`, inner, undefined);
      return;
    }
    const found = listLeaf(node, level);
    if (found === undefined || found.dimensions.length > DIMENSIONS_MAX) return void refuse(name, node);
    const { leaf, definitionMax, dimensions } = found;
    const type = dimensions.length === 0
      ? questdbType(leaf.element, hint) ?? typeOfLeaf(leaf.element)
      : arrayType(leaf.element, dimensions.length);
    if (type === undefined) return void refuse(name, node);
    columns.push({
      name: unique(name),
      type: type[0],
      conversion: type[1],
      leaf: leaf.leaf,
      definitionMax,
      dimensions,
    });
  };
  const hints = questdbTypes(questdb);
  root.children.forEach((child, index) => visit(child, child.element.name, 0, hints[index]));
  return { columns, leftOut, leafCount };
}

/** The elements are in prefix order. */
function treeOf(elements: readonly SchemaElement[]): { root: Node; leafCount: number } {
  let next = 0, leafCount = 0;
  const take = (depth: number): Node => {
    const element = elements[next++];
    if (element === undefined || depth > DEPTH_MAX) throw new ParquetError("its schema is not a tree");
    const childCount = element.num_children ?? 0, children: Node[] = [];
    if (childCount > 0 && element.type !== undefined) throw new ParquetError("its schema is not a tree");
    for (let k = 0; k < childCount; k++) children.push(take(depth + 1));
    return { element, children, leaf: element.type === undefined ? -1 : leafCount++ };
  };
  const root = take(0);
  if (next !== elements.length) throw new ParquetError("its schema is not a tree");
  return { root, leafCount };
}

const isList = ({ logical_type: logical, converted_type: converted }: SchemaElement) =>
  logical?.type === "LIST" || converted === "LIST";
const isMap = ({ logical_type: logical, converted_type: converted }: SchemaElement) =>
  logical?.type === "MAP" || converted === "MAP" || converted === "MAP_KEY_VALUE";

interface ListLeaf {
  leaf: Node;
  definitionMax: number;
  dimensions: number[];
}

/** The single leaf below a node that is a leaf, a list, or a list of lists; undefined for structs and maps in lists. */
function listLeaf(node: Node, level: number, dimensions: number[] = []): ListLeaf | undefined {
  const { element, children } = node;
  if (element.repetition_type === "OPTIONAL") level++;
  else if (element.repetition_type === "REPEATED") dimensions = [...dimensions, ++level];
  if (children.length === 0) return node.leaf < 0 ? undefined : { leaf: node, definitionMax: level, dimensions };
  if (!isList(element) || children.length !== 1) return undefined;
  const [repeated] = children;
  if (repeated.element.repetition_type !== "REPEATED") return undefined;
  // Two levels: the repeated node is the element.
  if (repeated.children.length === 0 || isList(repeated.element)) return listLeaf(repeated, level, dimensions);
  if (repeated.children.length > 1 || isStructOfOne(repeated, element)) return undefined;
  // Three levels: the repeated node only contains the element.
  return listLeaf(repeated.children[0], level + 1, [...dimensions, level + 1]);
}

/** Old writers use these names for repeated groups that are the elements themselves. */
function isStructOfOne({ element: { name }, children }: Node, list: SchemaElement): boolean {
  return (name === "array" || name === `${list.name}_tuple`) && children.length === 1;
}

function describe({ element, children }: Node): string {
  const one = describeOne(element, children);
  return element.repetition_type === "REPEATED" ? `LIST of ${one}` : one;
}

function describeOne(element: SchemaElement, children: Node[]): string {
  if (children.length === 0) return describeLeaf(element);
  if (isMap(element)) return "MAP";
  if (!isList(element) || children.length !== 1) return "STRUCT";
  const [repeated] = children;
  // The repeated node is the element or contains it.
  const isElement = repeated.children.length !== 1 || isList(repeated.element) || isStructOfOne(repeated, element);
  return isElement ? describe(repeated) : `LIST of ${describe(repeated.children[0])}`;
}

function describeLeaf(
  { type, type_length: length, logical_type: logical, converted_type: converted, ...more }: SchemaElement,
): string {
  if (logical?.type === "DECIMAL" || converted === "DECIMAL") return `DECIMAL(${more.precision},${more.scale ?? 0})`;
  if (logical?.type === "INTEGER") return `${logical.isSigned ? "" : "U"}INT_${logical.bitWidth}`;
  const name = logical?.type ?? (converted === "UTF8" ? "STRING" : converted);
  if (name !== undefined) return name;
  return type === "FIXED_LEN_BYTE_ARRAY" ? `${type}(${length})` : type ?? "no type";
}

type Found = [type: string, conversion: Conversion];

function typeOfLeaf(element: SchemaElement): Found | undefined {
  const { logical_type: logical, converted_type: converted, type_length: length = 0 } = element;
  const decimal = decimalOfLeaf(element);
  if (decimal !== undefined) return decimal ?? undefined;
  switch (element.type) {
    case "BOOLEAN":
      return ["BOOLEAN", conversions.BITS];
    case "INT32": {
      if (logical?.type === "DATE" || converted === "DATE") return ["DATE", conversions.DAYS];
      const width = integerOf(element);
      if (width === "INT_8") return ["BYTE", conversions.I32_TO_I8];
      if (width === "INT_16") return ["SHORT", conversions.I32_TO_I16];
      if (width === "UINT_32") return ["LONG", conversions.U32_TO_I64];
      return ["INT", conversions.I32]; // also the milliseconds of TIME
    }
    case "INT64":
      switch (timestampUnit(element)) {
        case "MILLIS":
          return ["DATE", conversions.I64];
        case "MICROS":
          return ["TIMESTAMP", conversions.I64];
        case "NANOS":
          return ["TIMESTAMP_NS", conversions.I64];
      }
      if (integerOf(element) === "UINT_64") return [U64_TYPE, conversions.decimal(U64_TYPE, "u64")];
      return ["LONG", conversions.I64]; // also the microseconds and nanoseconds of TIME
    case "INT96":
      return ["TIMESTAMP", conversions.INT96];
    case "FLOAT":
      return ["FLOAT", conversions.F32];
    case "DOUBLE":
      return ["DOUBLE", conversions.F64];
    case "BYTE_ARRAY":
      return isText(element) ? ["VARCHAR", conversions.TEXT] : ["BINARY", conversions.TEXT];
    case "FIXED_LEN_BYTE_ARRAY":
      if (length <= 0) return undefined;
      if (length === 2 && logical?.type === "FLOAT16") return ["FLOAT", conversions.F16];
      if (converted !== undefined || (logical !== undefined && logical.type !== "UUID")) return undefined;
      return length === 16 ? ["UUID", conversions.UUID] : ["BINARY", conversions.fixedBytes(length)];
    default:
      return undefined;
  }
}

/** LONG cannot represent all values of UINT64. */
const U64_TYPE = decimalTag(20, 0);

function isText({ logical_type: logical, converted_type: converted }: SchemaElement): boolean {
  return logical?.type === "STRING" || logical?.type === "ENUM" || logical?.type === "JSON" ||
    converted === "UTF8" || converted === "ENUM" || converted === "JSON";
}

/** `INT_8` … `UINT_64`, or another converted type. */
function integerOf({ logical_type: logical, converted_type: converted }: SchemaElement): string | undefined {
  return logical?.type === "INTEGER" ? `${logical.isSigned ? "" : "U"}INT_${logical.bitWidth}` : converted;
}

function timestampUnit({ logical_type: logical, converted_type: converted }: SchemaElement) {
  if (logical?.type === "TIMESTAMP") return logical.unit;
  return converted === "TIMESTAMP_MICROS" ? "MICROS" : converted === "TIMESTAMP_MILLIS" ? "MILLIS" : undefined;
}

/** Undefined: not a decimal; null: an unsupported decimal. */
function decimalOfLeaf(element: SchemaElement): Found | null | undefined {
  if (element.logical_type?.type !== "DECIMAL" && element.converted_type !== "DECIMAL") return undefined;
  const { precision = 0, scale = 0, type, type_length: length = 0 } = element;
  if (!(precision >= 1 && precision <= DECIMAL_PRECISION_MAX && scale >= 0 && scale <= precision)) return null;
  const source = type === "INT32"
    ? "i32"
    : type === "INT64"
    ? "i64"
    : type === "BYTE_ARRAY"
    ? "bytes"
    : type === "FIXED_LEN_BYTE_ARRAY" && length > 0
    ? length
    : undefined;
  if (source === undefined) return null;
  const tag = decimalTag(precision, scale);
  return [tag, conversions.decimal(tag, source)];
}

/** Arrays have elements of DOUBLE, so only numbers can be elements. */
function arrayType(element: SchemaElement, dimensions: number): Found | undefined {
  const conversion = elementConversion(element);
  return conversion && [`DOUBLE${"[]".repeat(dimensions)}`, conversion];
}

function elementConversion(element: SchemaElement): Conversion | undefined {
  const found = typeOfLeaf(element);
  if (found === undefined) return undefined;
  const [tag, conversion] = found, { type } = element;
  const decimal = decimalOfLeaf(element);
  if (decimal) return conversions.toDouble(conversion, "decimal", tag);
  if (type === "FLOAT") return conversions.toDouble(conversion, "f32");
  if (type === "DOUBLE") return conversions.toDouble(conversion, "f64");
  if (element.logical_type?.type === "FLOAT16") return conversions.toDouble(conversion, "f16");
  if (type !== "INT32" && type !== "INT64") return undefined;
  const integer = integerOf(element);
  // A time is not a number.
  if (integer !== undefined && !/^U?INT_\d+$/.test(integer)) return undefined;
  if (element.logical_type !== undefined && element.logical_type.type !== "INTEGER") return undefined;
  const isUnsigned = integer?.startsWith("U");
  return type === "INT32"
    ? conversions.toDouble(conversions.I32, isUnsigned ? "u32" : "i32")
    : conversions.toDouble(conversions.I64, isUnsigned ? "u64" : "i64");
}

/** QuestDB stores its own column types as numbers: the low byte is the type, parameters are above it. */
function questdbTypes(text: string | undefined): (number | undefined)[] {
  if (text === undefined) return [];
  try {
    const { schema } = JSON.parse(text);
    return Array.isArray(schema) ? schema.map((column) => Number(column?.column_type) || undefined) : [];
  } catch {
    return []; // use the file's own types
  }
}

/** Types without a Parquet counterpart, if the stored form matches. */
function questdbType(element: SchemaElement, code: number | undefined): Found | undefined {
  if (code === undefined) return undefined;
  const { type, type_length: length } = element;
  const bits = (code >> 8) & 255;
  switch (code & 255) {
    case QUESTDB_TYPE.char:
      return type === "INT32" ? ["CHAR", conversions.I32_TO_I16] : undefined;
    case QUESTDB_TYPE.ipv4:
      return type === "INT32" ? ["IPv4", conversions.I32] : undefined;
    case QUESTDB_TYPE.string:
      return type === "BYTE_ARRAY" && isText(element) ? ["STRING", conversions.TEXT] : undefined;
    case QUESTDB_TYPE.long256:
      return type === "FIXED_LEN_BYTE_ARRAY" && length === 32 ? ["LONG256", conversions.LONG256] : undefined;
    case QUESTDB_TYPE.geoByte:
    case QUESTDB_TYPE.geoShort:
    case QUESTDB_TYPE.geoInt:
    case QUESTDB_TYPE.geoLong:
      if (bits < 1 || bits > 60 || (type !== "INT32" && type !== "INT64")) return undefined;
      return [geohashTag(bits), conversions.geohash(type === "INT32" ? 4 : 8, bits)];
    default:
      return undefined;
  }
}

const QUESTDB_TYPE = {
  char: 4,
  string: 11,
  long256: 13,
  geoByte: 14,
  geoShort: 15,
  geoInt: 16,
  geoLong: 17,
  ipv4: 25,
} as const;
