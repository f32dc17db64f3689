import { assert } from "../assert.ts";
import { type Form, type Layout, LAYOUT_WIDTH, NULL_I32, NULL_I64, type Value } from "./layout.ts";
import type { TimeUnit } from "./parse/time.ts";
import * as text from "./text-forms.ts";
import { arrayDimensions, decimalOf, geohashBits } from "./wide.ts";

type Known = Exclude<Value, null>;

/**
 * Everything about a column type. Loops over columns have their own code for each layout, and replies for each type
 * (`wire/encode/types.ts`). All other code uses this entry.
 */
/**
 * For a parameter that its client declares as `numeric`: its type is that of a column that takes it, or of the DECIMAL beside it, otherwise
 * DOUBLE. No value has it.
 */
export const ANY_NUMBER = "any number";

export interface ColumnType {
  /** Identifies the type in plans and schemas. */
  readonly tag: string;
  /** Name in responses (`SYMBOL_TEXT` is called SYMBOL). */
  readonly name: string;
  readonly layout: Layout;
  /** Bytes per row. */
  readonly width: number;
  /**
   * The form in which a kernel reads a value. Undefined for types of more than 64 bits, which kernels cannot process.
   */
  readonly form: Form | undefined;
  /**
   * The value of a missing row in memory: the null sentinel, or 0/false for types without null. For text: length -1.
   */
  readonly nullValue: number | bigint;
  /** `nullValue` as the i32 words of a row. A narrower row is one number. */
  readonly nullWords: readonly number[];
  /** False for BOOLEAN, BYTE and SHORT: a missing value reads as false or 0 and IS NULL is false. */
  readonly nullable: boolean;
  /** The value that a missing value reads as: null, false or 0. */
  readonly missing: Value;
  /** True if a table column can have the type. */
  readonly storable: boolean;
  readonly pgOid: number;
  /** -1: variable. */
  readonly pgSize: number;
  /** The order of values in memory. Ascending order has nulls first, except for "float", where they are last. */
  readonly order: "signed" | "unsigned" | "float" | "text" | "none";
  /** Names accepted by SQL besides `name`, in upper case. */
  readonly aliases: readonly string[];
  /** For times: the unit in which they count since 1970, UTC. */
  readonly timeUnit?: TimeUnit;
  /** Formats and parses a value as one text. */
  readonly text: text.TextForm;
  /** For layout text: the bytes of a value. */
  readonly bytes: text.ByteForm;
  /** For up to 64 bits: the element of the layout's array for a value, and the inverse. */
  toBits(value: Known): number | bigint;
  fromBits(bits: number | bigint): Known;
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

const NULL_64 = [0, NULL_I32];
const NULL_WORDS: Record<Layout, readonly number[]> = {
  i8: [0],
  i16: [0],
  i32: [NULL_I32],
  i64: NULL_64,
  f32: [0x7fc00000],
  f64: [0, 0x7ff80000],
  i128: [...NULL_64, ...NULL_64],
  i256: [...NULL_64, ...NULL_64, ...NULL_64, ...NULL_64],
  symbol: [-1],
  text: [0, -1],
};

const FORMS: Record<Layout, Form | undefined> = {
  i8: "i8",
  i16: "i16",
  i32: "i32",
  i64: "i64",
  f32: "f32",
  f64: "f64",
  i128: undefined,
  i256: undefined,
  symbol: "i32",
  text: "i64",
};

function entry(
  tag: string,
  layout: Layout,
  pg: [oid: number, size: number],
  order: ColumnType["order"],
  form: text.TextForm,
  more: Partial<ColumnType> = {},
): ColumnType {
  return {
    tag,
    name: tag,
    layout,
    width: LAYOUT_WIDTH[layout],
    form: FORMS[layout],
    nullValue: NULL_LAYOUT[layout],
    nullWords: NULL_WORDS[layout],
    nullable: true,
    missing: null,
    storable: true,
    pgOid: pg[0],
    pgSize: pg[1],
    order,
    aliases: [],
    text: form,
    bytes: text.UTF8,
    toBits: layout === "i64" ? (value) => BigInt(value) : Number,
    fromBits: (bits) => bits,
    ...more,
  };
}

/** Infinities are null, and there is one NaN. */
const finite = (value: number): number => Number.isFinite(value) ? value : NaN;

const NULL_0: Partial<ColumnType> = { nullValue: 0, nullWords: [0] };

const ENTRIES: ColumnType[] = [
  entry("BOOLEAN", "i8", [16, 1], "signed", text.BOOLEAN, {
    nullable: false,
    missing: false,
    aliases: ["BOOL"],
    fromBits: (bits) => bits !== 0,
  }),
  entry("BYTE", "i8", [21, 2], "signed", text.integer(127), { nullable: false, missing: 0 }),
  entry("SHORT", "i16", [21, 2], "signed", text.integer(32767), {
    nullable: false,
    missing: 0,
    aliases: ["SMALLINT", "INT2"],
  }),
  // One UTF-16 unit; 0 is null.
  entry("CHAR", "i16", [1042, -1], "unsigned", text.CHAR, {
    form: "u16",
    toBits: (value) => String(value).charCodeAt(0) || 0,
    fromBits: (bits) => String.fromCharCode(Number(bits)),
  }),
  entry("INT", "i32", [23, 4], "signed", text.integer(2147483647, NULL_I32), { aliases: ["INTEGER", "INT4"] }),
  entry("LONG", "i64", [20, 8], "signed", text.long(NULL_I64), { aliases: ["BIGINT", "INT8"] }),
  entry("FLOAT", "f32", [700, 4], "float", text.FLOAT, {
    aliases: ["REAL", "FLOAT4"],
    toBits: (value) => finite(Math.fround(Number(value))),
  }),
  entry("DOUBLE", "f64", [701, 8], "float", text.DOUBLE, {
    aliases: ["DOUBLE PRECISION", "FLOAT8"],
    toBits: (value) => finite(Number(value)),
  }),
  entry("DATE", "i64", [1114, 8], "signed", text.DATE, { timeUnit: "ms" }),
  entry("TIMESTAMP", "i64", [1114, 8], "signed", text.TIMESTAMP, {
    timeUnit: "us",
    aliases: ["TIMESTAMP WITH TIME ZONE", "TIMESTAMP WITHOUT TIME ZONE", "TIMESTAMPTZ"],
  }),
  entry("TIMESTAMP_NS", "i64", [1114, 8], "signed", text.TIMESTAMP_NS, { timeUnit: "ns" }),
  entry("SYMBOL", "symbol", [1043, -1], "text", text.TEXT),
  // A computed SYMBOL without a dictionary.
  entry("SYMBOL_TEXT", "text", [1043, -1], "text", text.TEXT, { name: "SYMBOL", storable: false }),
  entry("STRING", "text", [1043, -1], "text", text.TEXT, { aliases: ["TEXT"] }),
  entry("VARCHAR", "text", [1043, -1], "text", text.TEXT, { aliases: ["CHARACTER VARYING"] }),
  entry("UUID", "i128", [2950, 16], "unsigned", text.UUID),
  entry("IPv4", "i32", [1043, -1], "unsigned", text.IPV4, {
    ...NULL_0,
    aliases: ["IPV4"],
    toBits: (value) => Number(value) | 0,
    fromBits: (bits) => Number(bits) >>> 0,
  }),
  entry("LONG256", "i256", [1043, -1], "unsigned", text.LONG256),
  entry("BINARY", "text", [17, -1], "none", text.BINARY, { aliases: ["BYTEA"], bytes: text.BINARY_BYTES }),
  entry("NULL", "text", [1043, -1], "text", text.TEXT, { name: "STRING", storable: false }), // the type of a bare NULL
  // Low half: the first instant (us), high half: the last.
  entry("INTERVAL", "i128", [1043, -1], "none", text.INTERVAL, { storable: false }),
];

const BY_TAG = new Map(ENTRIES.map((type) => [type.tag, type]));
const BY_NAME = new Map<string, ColumnType>();
for (const type of ENTRIES) {
  for (const name of [type.name.toUpperCase(), ...type.aliases]) if (!BY_NAME.has(name)) BY_NAME.set(name, type);
}

/** The entry of a type with parameters, created on first use. */
function parametrised(tag: string): ColumnType | undefined {
  const decimal = decimalOf(tag);
  // Up to 18 digits fit in an i64, up to 38 in an i128, more in an i256.
  if (decimal) {
    const layout = decimal.precision <= 18 ? "i64" : decimal.precision <= 38 ? "i128" : "i256";
    return entry(tag, layout, [1700, -1], "signed", text.decimal(decimal));
  }
  const bits = geohashBits(tag), dimensions = arrayDimensions(tag);
  if (bits !== undefined) return entry(tag, "i64", [1043, -1], "signed", text.geohash(bits));
  if (dimensions > 0) {
    const bytes = text.arrayBytes(dimensions);
    return entry(tag, "text", [1022, -1], "none", text.array(dimensions), { name: "ARRAY", bytes });
  }
  return undefined;
}

/** The entry of a tag. Tags come only from this layer, so an unknown one is an internal error. */
export function typeOf(tag: string): ColumnType {
  const known = BY_TAG.get(tag);
  if (known) return known;
  const type = parametrised(tag);
  assert(type !== undefined, `no column type ${tag}`);
  BY_TAG.set(tag, type);
  return type;
}

/** The full name of a tag's type. Arrays are called ARRAY in answers, but by this name in metadata. */
export function typeName(tag: string): string {
  return arrayDimensions(tag) > 0 ? tag : typeOf(tag).name;
}

/** The tag of a type name in SQL, in any case; undefined if unknown. */
export function tagOfName(name: string): string | undefined {
  return BY_NAME.get(name.toUpperCase())?.tag;
}

/** All single-word type names of SQL, in lower case. */
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

/** Names of all types that a column can have. */
export function typeNames(): string[] {
  return ENTRIES.filter((type) => type.storable).map((type) => type.name);
}
