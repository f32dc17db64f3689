/**
 * Statements that call each function of the catalogue with extreme values of every argument. They are derived from the entries'
 * declarations, so that new functions are included automatically.
 */
import { type FunctionEntry, FUNCTIONS, isInternal } from "../../src/sql/functions/mod.ts";
import type { Random } from "./random.ts";

/** The columns of a table with one column for each type, by type tag. */
export const COLUMNS: Record<string, { name: string; made: string }> = {
  BOOLEAN: { name: "bo", made: "rnd_boolean()" },
  BYTE: { name: "b", made: "rnd_byte()" },
  SHORT: { name: "sh", made: "rnd_short()" },
  CHAR: { name: "ch", made: "rnd_char()" },
  INT: { name: "i", made: "rnd_int(-2147483647, 2147483647, 5)" },
  LONG: { name: "l", made: "rnd_long(-9223372036854775807, 9223372036854775807, 5)" },
  FLOAT: { name: "f", made: "rnd_float(5)" },
  DOUBLE: { name: "d", made: "rnd_double(5) * 1e300" },
  DATE: { name: "da", made: "rnd_date('1000-01-01'::date, '9999-01-01'::date, 5)" },
  TIMESTAMP: { name: "t", made: "rnd_timestamp('1000-01-01', '9999-01-01', 5)" },
  TIMESTAMP_NS: { name: "tn", made: "rnd_timestamp_ns('1900-01-01', '2200-01-01', 5)" },
  STRING: { name: "st", made: "rnd_str(0, 100, 5)" },
  VARCHAR: { name: "v", made: "rnd_varchar(0, 200, 5)" },
  SYMBOL: { name: "sy", made: "rnd_symbol(100, 1, 20, 5)" },
  UUID: { name: "u", made: "rnd_uuid4(5)" },
  IPv4: { name: "ip", made: "rnd_ipv4('10.0.0.0/8', 5)" },
  LONG256: { name: "l2", made: "to_long256(rnd_long(), rnd_long(), rnd_long(), rnd_long())" },
  BINARY: { name: "bi", made: "from_base64(rnd_str(0, 100, 5))" },
  "GEOHASH(8c)": { name: "g", made: "rnd_geohash(40)" },
  "DECIMAL(38,10)": { name: "de", made: "rnd_decimal(38, 10, 5)" },
  "DOUBLE[]": { name: "ar", made: "rnd_double_array(1, 5, 20)" },
};

const ROWS = 2_500;
/** Creates the table. */
export const TABLE = [
  `create table everything as (select x, timestamp_sequence('2024-01-01', 60000000) ts, ${
    Object.values(COLUMNS).map(({ name, made }) => `${made} ${name}`).join(", ")
  } from long_sequence(${ROWS})) timestamp(ts) partition by day`,
  "insert into everything select * from everything",
  "insert into everything select * from everything",
];

/** Extreme values of each type, as SQL. Values for constant arguments must be short. */
const EXTREMES: Record<string, string[]> = {
  BOOLEAN: ["true", "false"],
  BYTE: ["cast(127 as byte)", "cast(-128 as byte)", "cast(0 as byte)"],
  SHORT: ["cast(32767 as short)", "cast(-32768 as short)"],
  CHAR: ["'a'::char", "null::char"],
  INT: ["0", "1", "-1", "2147483647", "-2147483647", "1000000", "null::int"],
  LONG: ["0L", "1L", "-1L", "9223372036854775807L", "-9223372036854775807L", "1000000000L", "null::long"],
  FLOAT: ["3.4e38::float", "-1.0f", "null::float"],
  DOUBLE: ["0.0", "0.5", "-1.0", "1.7e308", "-1.7e308", "5e-324", "NaN"],
  DATE: ["'0001-01-01'::date", "'9999-12-31'::date", "null::date"],
  TIMESTAMP: [
    "'0001-01-01'::timestamp",
    "'9999-12-31T23:59:59.999999'::timestamp",
    "'2024-03-31T01:30'::timestamp",
    "null::timestamp",
  ],
  TIMESTAMP_NS: ["'1700-01-01'::timestamp_ns", "'2262-01-01'::timestamp_ns", "null::timestamp_ns"],
  STRING: [
    "''",
    "'a'",
    "null::string",
    "'1h'",
    "'h'",
    "'M'",
    "'y'",
    "'n'",
    "'d'",
    "'Europe/Berlin'",
    "'(a+)+$'",
    "'%_%_%'",
    "'$.a[0]'",
    "'2024-02-30T25:61:00Z'",
    "'10.0.0.0/8'",
    "'yyyy-MM-ddTHH:mm:ss.SSSUUUNNNZ'",
    "'everything'",
    "'0x00ff'",
  ],
  UUID: ["'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid", "null::uuid"],
  IPv4: ["'255.255.255.255'::ipv4", "null::ipv4"],
  LONG256: ["'0xffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff'::long256", "to_long256(1, 2, 3, 4)"],
  BINARY: ["from_base64('AAAA')", "from_base64(repeat('A', 16000000))"],
  INTERVAL: ["interval('1970-01-01', '9999-12-31')", "today()"],
  NULL: ["null"],
  "GEOHASH(8c)": ["#u33d8b12", "cast(null as geohash(8c))"],
  "DECIMAL(38,10)": ["9999999999999999999999999999.9999999999m", "-0.0000000001m", "cast(null as decimal(38,10))"],
  "DOUBLE[]": [
    "array[1.0, null, -1e308]",
    "array_build(1, 0, 1)",
    "array_build(1, 1000000, 1)",
    "null::double[]",
  ],
  "DOUBLE[][]": ["array[[1.0, 2.0], [3.0, 4.0]]", "array_build(2, 100000, 1, 2)"],
};

/** Long texts: of one letter, of multi-byte letters, of digits, of brackets, of words. */
const LONG_TEXTS = [
  "repeat('x', 16000000)",
  "repeat('é', 8000000)",
  "repeat('9', 10000000)",
  "repeat('[', 1000000)",
  "repeat('{\"a\":', 1000000)",
  "repeat('a b,', 300000)",
  "repeat(x::string, 1000000)",
  "repeat('x' || x, 100000)",
];

/** Types that represent each class. */
const CLASSES: Record<string, string[]> = {
  any: Object.keys(COLUMNS),
  same: Object.keys(COLUMNS),
  text: ["STRING", "STRING", "VARCHAR", "SYMBOL", "CHAR"],
  number: ["BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE"],
  integer: ["BYTE", "SHORT", "INT", "LONG"],
  time: ["DATE", "TIMESTAMP", "TIMESTAMP_NS"],
  wide: ["LONG256", "BINARY", "GEOHASH(8c)", "DECIMAL(38,10)", "DOUBLE[]"],
  decimal: ["DECIMAL(38,10)"],
  array: ["DOUBLE[]", "DOUBLE[]", "DOUBLE[][]"],
  SYMBOL_TEXT: ["STRING"],
};

/** Entries that statements can call. Others are called through these: dateadd('M', …) becomes "dateadd_months". */
export const ENTRIES: readonly FunctionEntry[] = FUNCTIONS.filter(({ name }) =>
  !isInternal(name) || /^(?:cast|assign|decimal|json_extract)_|^array_(?:of|slice)$/.test(name)
);

/** Scalar entries by result type, for nested calls. */
const SCALARS = ENTRIES.filter((entry) => entry.emit !== undefined || entry.batch !== undefined);
const BY_RESULT = new Map<string, FunctionEntry[]>();
for (const entry of SCALARS) {
  if (typeof entry.returns === "string") {
    BY_RESULT.set(entry.returns, [...BY_RESULT.get(entry.returns) ?? [], entry]);
  }
}

const TARGETS: Record<string, string> = {
  GEOHASH: "geohash(4c)",
  ARRAY: "double[]",
  DECIMAL: "decimal(40,5)",
  SYMBOL_TEXT: "symbol",
  SYMBOL: "symbol",
  UUID: "uuid",
};

/** The call in SQL: infix operators, casts as casts. */
function written(name: string, args: readonly string[]): string {
  const cast = /^(?:cast|assign|decimal)_([A-Z]\w*)$/.exec(name);
  if (cast) return `cast(${args[0]} as ${TARGETS[cast[1]] ?? cast[1].toLowerCase()})`;
  const json = /^json_extract_([A-Z]\w*)$/.exec(name);
  if (json) return `json_extract(${args.join(", ")})::${json[1].toLowerCase()}`;
  if (name === "is_null") return `((${args[0]}) is null)`;
  if (name === "not") return `(not (${args[0]}))`;
  if (name === "neg") return `(-(${args[0]}))`;
  if (name === "between") return `((${args[0]}) between (${args[1]}) and (${args[2]}))`;
  if (name === "array_slice") return `(${args[0]})[${args.slice(1).join(", ") || "1:2"}]`;
  if (name === "array_of") return `array[${args.join(", ")}]`;
  const isInfix = !/^\w+$/.test(name) || ["and", "or", "like", "ilike"].includes(name);
  if (isInfix && args.length === 2) return `((${args[0]}) ${name} (${args[1]}))`;
  if (isInfix) return `(${name}(${args[0]}))`;
  return `${name}(${args.join(", ")})`;
}

/** An expression of a type; with `depth` above 0 mostly a call. */
function value(random: Random, type: string, isConstant: boolean, depth: number): string {
  const tag = type in CLASSES ? random.of(CLASSES[type]) : type;
  const makers = BY_RESULT.get(tag);
  if (!isConstant && depth > 0 && makers !== undefined && random.below(10) < 8) {
    return call(random, random.of(makers), depth - 1);
  }
  const isText = tag === "STRING" || tag === "VARCHAR";
  if (!isConstant && isText && random.below(10) < 5) return random.of(LONG_TEXTS);
  const column = COLUMNS[tag]?.name;
  if (!isConstant && column !== undefined && random.below(10) < 3) return column;
  return random.of(EXTREMES[tag] ?? (isText ? EXTREMES.STRING : column === undefined ? ["null"] : [column]));
}

function call(random: Random, entry: FunctionEntry, depth: number): string {
  const args: string[] = [];
  let same: string | undefined;
  for (const arg of entry.args) {
    if (arg.optional && random.below(3) === 0) break;
    const type = arg.type === "same" ? same ??= random.of(CLASSES.same) : arg.type;
    for (let count = arg.variadic ? 1 + random.below(3) : 1; count > 0; count--) {
      args.push(value(random, type, arg.constant === true, depth));
    }
  }
  return written(entry.name, args);
}

const FRAMES = [
  "order by ts",
  "partition by x % 10 order by ts",
  "partition by sy order by ts rows between 1000000 preceding and current row",
  "order by ts range between 1 day preceding and current row",
  "",
];

/** A statement that calls the entry. Its arguments are calls themselves, down to `depth` levels. */
export function statementOf(random: Random, entry: FunctionEntry, depth: number): string {
  const made = call(random, entry, depth);
  if (entry.table) return `select count() from ${made}`;
  if (entry.window || (entry.aggregate !== undefined && random.below(4) === 0)) {
    return `select ${made} over (${random.of(FRAMES)}) from everything`;
  }
  if (entry.aggregate !== undefined) {
    return random.of([
      `select ${made} from everything`,
      `select x % 1000 k, ${made} from everything`,
      `select ts, ${made} from everything sample by 1h`,
    ]);
  }
  return random.of([
    `select ${made} from long_sequence(1), everything limit 1`,
    `select ${made} from everything`,
    `select count() from everything where ${written("is_null", [made])}`,
  ]);
}

/** Statements for each entry alone and nested once and twice, `rounds` times, in random order. */
export function shuffledStatements(random: Random, rounds: number): string[] {
  const statements: string[] = [];
  for (let round = 0; round < rounds; round++) {
    for (const depth of [0, 1, 2]) for (const entry of ENTRIES) statements.push(statementOf(random, entry, depth));
  }
  for (let k = statements.length - 1; k > 0; k--) {
    const other = random.below(k + 1);
    [statements[k], statements[other]] = [statements[other], statements[k]];
  }
  return statements;
}
