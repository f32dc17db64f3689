import { assert } from "../errors.ts";
import { type Layout, LAYOUT_WIDTH, NULL_I32, NULL_I64, type Value } from "./layout.ts";
import { arrayDimensions, decimalOf, geohashBits } from "./wide.ts";

/** All there is to know of a column type. Reading from and writing to text are in `./parse/` and `./encode/`, by the same tag. */
export interface ColumnType {
  /** The identity in plans and schemas. */
  readonly tag: string;
  /** What replies call it (`SYMBOL_TEXT` is called SYMBOL). */
  readonly name: string;
  readonly layout: Layout;
  /** Bytes a row. */
  readonly width: number;
  /** What a row holds that has no value: the null sentinel, or 0/false for the types without null. For text: length -1. */
  readonly nullValue: number | bigint;
  /** False for BOOLEAN, BYTE and SHORT: a missing value reads as false or 0 and IS NULL is false. */
  readonly nullable: boolean;
  /** What a missing value reads as: null, or false or 0. */
  readonly missing: Value;
  /** May a table column have it? */
  readonly storable: boolean;
  readonly pgOid: number;
  /** -1 is variable. */
  readonly pgSize: number;
  /** The order of its values in memory. Nulls come first ascending, but for "float", where they come last. */
  readonly order: "signed" | "unsigned" | "float" | "text" | "none";
  /** Names that SQL takes for it besides `name`, upper case. */
  readonly aliases: readonly string[];
}

const NULL_LAYOUT: Record<Layout, number | bigint> = {
  i8: 0,
  i16: 0,
  i32: NULL_I32,
  i64: NULL_I64,
  f32: NaN,
  f64: NaN,
  i128: NULL_I64,
  i256: NULL_I64,
  symbol: -1,
  text: -1,
};

function entry(
  tag: string,
  layout: Layout,
  pg: [oid: number, size: number],
  order: ColumnType["order"],
  more: Partial<ColumnType> = {},
): ColumnType {
  return {
    tag,
    name: tag,
    layout,
    width: LAYOUT_WIDTH[layout],
    nullValue: NULL_LAYOUT[layout],
    nullable: true,
    missing: null,
    storable: true,
    pgOid: pg[0],
    pgSize: pg[1],
    order,
    aliases: [],
    ...more,
  };
}

const ENTRIES: ColumnType[] = [
  entry("BOOLEAN", "i8", [16, 1], "signed", { nullable: false, missing: false, aliases: ["BOOL"] }),
  entry("BYTE", "i8", [21, 2], "signed", { nullable: false, missing: 0 }),
  entry("SHORT", "i16", [21, 2], "signed", { nullable: false, missing: 0, aliases: ["SMALLINT", "INT2"] }),
  entry("CHAR", "i16", [1042, -1], "unsigned"), // one UTF-16 unit; 0 is null
  entry("INT", "i32", [23, 4], "signed", { aliases: ["INTEGER", "INT4"] }),
  entry("LONG", "i64", [20, 8], "signed", { aliases: ["BIGINT", "INT8"] }),
  entry("FLOAT", "f32", [700, 4], "float", { aliases: ["REAL", "FLOAT4"] }),
  entry("DOUBLE", "f64", [701, 8], "float", { aliases: ["DOUBLE PRECISION", "FLOAT8"] }),
  entry("DATE", "i64", [1114, 8], "signed"), // ms since 1970 UTC
  entry("TIMESTAMP", "i64", [1114, 8], "signed", {
    aliases: ["TIMESTAMP WITH TIME ZONE", "TIMESTAMP WITHOUT TIME ZONE", "TIMESTAMPTZ"],
  }), // us since 1970 UTC
  entry("TIMESTAMP_NS", "i64", [1114, 8], "signed"), // ns since 1970 UTC
  entry("SYMBOL", "symbol", [1043, -1], "text"),
  entry("SYMBOL_TEXT", "text", [1043, -1], "text", { name: "SYMBOL", storable: false }), // a SYMBOL that was computed, without a dictionary
  entry("STRING", "text", [1043, -1], "text", { aliases: ["TEXT"] }),
  entry("VARCHAR", "text", [1043, -1], "text", { aliases: ["CHARACTER VARYING"] }),
  entry("UUID", "i128", [2950, 16], "unsigned"),
  entry("IPv4", "i32", [1043, -1], "unsigned", { nullValue: 0, aliases: ["IPV4"] }),
  entry("LONG256", "i256", [1043, -1], "unsigned"),
  entry("BINARY", "text", [17, -1], "none", { aliases: ["BYTEA"] }),
  entry("NULL", "text", [1043, -1], "text", { name: "STRING", storable: false }), // the type of a bare NULL
  entry("INTERVAL", "i128", [1043, -1], "none", { storable: false }), // low half: first instant (us), high half: last
];

const BY_TAG = new Map(ENTRIES.map((type) => [type.tag, type]));
const BY_NAME = new Map<string, ColumnType>();
for (const type of ENTRIES) {
  for (const name of [type.name.toUpperCase(), ...type.aliases]) if (!BY_NAME.has(name)) BY_NAME.set(name, type);
}

/** The entry of a type with parameters, made when it is first asked for. */
function parametrised(tag: string): ColumnType | undefined {
  const decimal = decimalOf(tag);
  // Up to 18 digits fit an i64; more take an i128, which holds 38, or an i256.
  if (decimal) {
    return entry(
      tag,
      decimal.precision <= 18 ? "i64" : decimal.precision <= 38 ? "i128" : "i256",
      [1700, -1],
      "signed",
    );
  }
  if (geohashBits(tag) !== undefined) return entry(tag, "i64", [1043, -1], "signed");
  if (arrayDimensions(tag) > 0) return entry(tag, "text", [1022, -1], "none", { name: "ARRAY" });
  return undefined;
}

/** The entry of a tag. Tags come from this room only, so an unknown one is our fault. */
export function typeOf(tag: string): ColumnType {
  const known = BY_TAG.get(tag);
  if (known) return known;
  const type = parametrised(tag);
  assert(type !== undefined, `no column type ${tag}`);
  BY_TAG.set(tag, type);
  return type;
}

/** The tag for a name as SQL spells it, in any case; undefined when there is none. */
export function tagOfName(name: string): string | undefined {
  return BY_NAME.get(name.toUpperCase())?.tag;
}

/** In lower case: all single words that SQL takes for a type. */
export function typeSpellings(): string[] {
  const names = [
    ...ENTRIES.map(({ name }) => name),
    "DECIMAL",
    "GEOHASH",
    ...ENTRIES.flatMap(({ aliases }) => aliases),
  ];
  return [...new Set(names)].filter((name) => !name.includes(" ")).map((name) => name.toLowerCase());
}

export function layoutOf(tag: string): Layout {
  return typeOf(tag).layout;
}

/** Names of all types that a column may have. */
export function typeNames(): string[] {
  return ENTRIES.filter((type) => type.storable).map((type) => type.name);
}
