/** A value of each column type, and how readers of Parquet see it. */
export interface TypeCase {
  /** As in CREATE TABLE. */
  type: string;
  /** The value in SQL; `bytes` is a BINARY column. */
  sql: string;
  /** Arrow's name of the type, and the value as printed by `arrow.py`. */
  arrow: [type: string, value: string];
  /** DuckDB's name of the type, and the value as text. */
  duck: [type: string, value: string];
  /** The type that read_parquet gives; default: the same type. */
  back?: string;
  /** The value of a row without a value if the type has no null, in Arrow and in DuckDB. */
  none?: [arrow: string, duck: string];
}

/** Hexadecimal digits of `length` bytes that start with `bytes`. */
const hex = (bytes: string, length: number) => bytes.padEnd(2 * length, "0");
const utc = (unit: string) => `timestamp[${unit}, tz=UTC]`;

export const CASES: TypeCase[] = [
  { type: "BOOLEAN", sql: "true", arrow: ["bool", "true"], duck: ["BOOLEAN", "true"], none: ["false", "false"] },
  { type: "BYTE", sql: "-128::byte", arrow: ["int8", "-128"], duck: ["TINYINT", "-128"], none: ["0", "0"] },
  { type: "SHORT", sql: "32767::short", arrow: ["int16", "32767"], duck: ["SMALLINT", "32767"], none: ["0", "0"] },
  { type: "CHAR", sql: "'é'", arrow: ["uint16", "233"], duck: ["USMALLINT", "233"] },
  { type: "INT", sql: "-2147483647", arrow: ["int32", "-2147483647"], duck: ["INTEGER", "-2147483647"] },
  {
    type: "LONG",
    sql: "9223372036854775807",
    arrow: ["int64", "9223372036854775807"],
    duck: ["BIGINT", "9223372036854775807"],
  },
  { type: "FLOAT", sql: "-1.5::float", arrow: ["float", "-1.5"], duck: ["FLOAT", "-1.5"] },
  { type: "DOUBLE", sql: "0.1", arrow: ["double", "0.1"], duck: ["DOUBLE", "0.1"] },
  {
    type: "DATE",
    sql: "'1969-12-31T23:59:59.999Z'",
    arrow: [utc("ms"), "-1"],
    duck: ["TIMESTAMP WITH TIME ZONE", "1969-12-31 23:59:59.999+00"],
  },
  {
    type: "TIMESTAMP",
    sql: "'2024-02-29T12:30:45.123456Z'",
    arrow: [utc("us"), "1709209845123456"],
    duck: ["TIMESTAMP WITH TIME ZONE", "2024-02-29 12:30:45.123456+00"],
  },
  {
    type: "TIMESTAMP_NS",
    sql: "'2024-02-29T12:30:45.123456789Z'",
    // Without a zone, because DuckDB truncates nanoseconds with a zone.
    arrow: ["timestamp[ns]", "1709209845123456789"],
    duck: ["TIMESTAMP_NS", "2024-02-29 12:30:45.123456789"],
  },
  { type: "SYMBOL", sql: "'größe'", arrow: ["string", "größe"], duck: ["VARCHAR", "größe"], back: "VARCHAR" },
  { type: "STRING", sql: "'a,\"b'", arrow: ["string", 'a,"b'], duck: ["VARCHAR", 'a,"b'] },
  { type: "VARCHAR", sql: "'日本'", arrow: ["string", "日本"], duck: ["VARCHAR", "日本"] },
  {
    type: "UUID",
    sql: "'f1111111-2222-3333-4444-5555555555ff'",
    arrow: ["extension<arrow.uuid>", "f1111111-2222-3333-4444-5555555555ff"],
    duck: ["UUID", "f1111111-2222-3333-4444-5555555555ff"],
  },
  { type: "IPv4", sql: "'255.2.3.4'", arrow: ["uint32", "4278321924"], duck: ["UINTEGER", "4278321924"] },
  {
    type: "LONG256",
    sql: "'0xff00000000000000000000000000000000000000000000000000000000000102'",
    arrow: ["fixed_size_binary[32]", `0201${"00".repeat(29)}ff`],
    duck: ["BLOB", `0201${"00".repeat(29)}FF`],
  },
  { type: "BINARY", sql: "bytes", arrow: ["binary", hex("00ff80", 5)], duck: ["BLOB", hex("00FF80", 5)] },
  { type: "GEOHASH(3b)", sql: "##111", arrow: ["int8", "7"], duck: ["TINYINT", "7"] },
  { type: "GEOHASH(3c)", sql: "#zp0", arrow: ["int16", "32416"], duck: ["SMALLINT", "32416"] },
  { type: "GEOHASH(6c)", sql: "#zp052w", arrow: ["int32", "1062212700"], duck: ["INTEGER", "1062212700"] },
  {
    type: "GEOHASH(12c)",
    sql: "#zp052w92p1p8",
    arrow: ["int64", "1140542202278741672"],
    duck: ["BIGINT", "1140542202278741672"],
  },
  ...[
    ["DECIMAL(2,1)", "-9.9"],
    ["DECIMAL(4,2)", "12.34"],
    ["DECIMAL(9,2)", "-9999999.99"],
    ["DECIMAL(18,4)", "99999999999999.9999"],
    ["DECIMAL(19,0)", "-9999999999999999999"],
    ["DECIMAL(38,2)", "-999999999999999999999999999999999999.99"],
  ].map(([type, value]): TypeCase => ({
    type,
    sql: `${value}m`,
    arrow: [type.replace("DECIMAL", "decimal128").replace(",", ", "), value],
    duck: [type, value],
  })),
  {
    type: "DECIMAL(76,2)",
    sql: `-${"9".repeat(74)}.99m`,
    arrow: ["decimal256(76, 2)", `-${"9".repeat(74)}.99`],
    // DuckDB has 38 digits, and no exact conversion to DOUBLE.
    duck: ["DOUBLE", "-1.0000000000000001e+74"],
  },
  {
    type: "DOUBLE[]",
    sql: "array[1.5,null,-2.0]",
    arrow: ["list<element: double>", "[1.5,null,-2.0]"],
    duck: ["DOUBLE[]", "[1.5, NULL, -2.0]"],
  },
  {
    type: "DOUBLE[][]",
    sql: "array[[1.0,2.0],[3.0,null],[5.0,6.0]]",
    arrow: ["list<element: list<element: double> not null>", "[[1.0,2.0],[3.0,null],[5.0,6.0]]"],
    duck: ["DOUBLE[][]", "[[1.0, 2.0], [3.0, NULL], [5.0, 6.0]]"],
  },
  {
    type: "DOUBLE[][][]",
    sql: "array[[[1.0],[2.0]]]",
    arrow: ["list<element: list<element: list<element: double> not null> not null>", "[[[1.0],[2.0]]]"],
    duck: ["DOUBLE[][][]", "[[[1.0], [2.0]]]"],
  },
];
