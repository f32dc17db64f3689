/**
 * Suggestions for users of other databases: what to write here instead of functions, types, phrases and statements that
 * do not exist here.
 */
import { SqlError, SQLSTATE } from "../errors.ts";
import type { Token } from "./lexer.ts";

/** By lower-case names. */
const FUNCTIONS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    "time_bucket date_bin tumble tostartofhour tostartofday tostartofminute tostartofinterval":
      "SAMPLE BY 1h groups by time, timestamp_floor('1h', ts) rounds a time",
    "mean": "avg(x)",
    "median percentile_cont percentile_disc quantile": "approx_percentile(x, 0.5)",
    "ifnull isnull nvl2": "coalesce(x, 0), or CASE",
    "if iff iif": "CASE WHEN condition THEN x ELSE y END",
    "getdate curdate localtimestamp current_date utc_timestamp getutcdate": "now() or today()",
    "date_add adddate timestampadd date_sub interval": "dateadd('h', -1, ts)",
    "date_diff timediff timestampdiff": "datediff('h', a, b)",
    "unix_timestamp from_unixtime to_unixtime epoch":
      "ts::long is the number of microseconds since 1970, n::timestamp converts it back",
    "date_format strftime to_char format_datetime": "to_str(ts, 'yyyy-MM-dd')",
    "str_to_date parse_datetime": "to_timestamp('2026-01-31', 'yyyy-MM-dd')",
    "group_concat listagg array_agg": "string_agg(x, ',')",
    "len char_length": "length(x)",
    "substr mid": "substring(x, 1, 3)",
    "charindex instr locate": "strpos(x, 'part')",
    "rand random": "rnd_double()",
    "uuid newid gen_random_uuid uuid_generate_v4": "rnd_uuid4()",
    "derivative difference non_negative_derivative moving_average":
      "lag(x) or avg(x) OVER (ORDER BY ts ROWS BETWEEN …)",
    "create_hypertable": "CREATE TABLE … TIMESTAMP(ts) PARTITION BY DAY makes a table by time",
    "touch": "nothing, the first query that reads a column keeps it in memory",
    "last_insert_id scope_identity nextval": "there are no generated keys",
  }).flatMap(([names, hint]) => names.split(" ").map((name) => [name, hint] as const)),
);

/** Text appended to the error about an unknown function, or column for functions without parentheses. */
export function functionHint(name: string): string | undefined {
  const hint = FUNCTIONS.get(name.toLowerCase());
  return hint === undefined ? undefined : `; here: ${hint}`;
}

/** Types of other databases, by lower-case names. */
const TYPES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    "serial bigserial smallserial identity": "there are no generated keys; use INT or LONG for numbers",
    "timestamptz datetime datetime2 smalldatetime timestampntz": "TIMESTAMP, in UTC",
    "nvarchar nchar bpchar clob ntext tinytext longtext citext": "VARCHAR, or SYMBOL for texts that repeat",
    "enum": "SYMBOL",
    "json jsonb xml": "VARCHAR, which json_extract() reads",
    "tinyint int1 uint8": "BYTE or SHORT",
    "int2 uint16": "SHORT",
    "int4 int32 mediumint uint32": "INT or LONG",
    "int8 int64 uint64 number unsigned": "LONG",
    "bool bit": "BOOLEAN",
    "float4 float32": "FLOAT",
    "float8 float64": "DOUBLE",
    "money": "DECIMAL(18, 2)",
    "blob bytea varbinary longblob bytes": "BINARY",
    "time": "TIMESTAMP, or LONG for a time of day",
    "inet cidr": "IPv4",
    "uniqueidentifier": "UUID",
  }).flatMap(([names, hint]) => names.split(" ").map((name) => [name, hint] as const)),
);

/** Text appended to the error about an unknown type. */
export function typeHint(name: string): string | undefined {
  const hint = TYPES.get(name.toLowerCase());
  return hint === undefined ? undefined : `; here: ${hint}`;
}

/** The sentence for a duration where a value is expected. */
export const NO_DURATION = "a duration is not a value: dateadd('h', -1, ts) is one hour before ts";

const NO_CONSTRAINTS = "columns cannot have defaults or constraints";
const INDEX_OF_COLUMN = "indexes are declared with their column: CREATE TABLE t (c SYMBOL INDEX, …)";

/** The message for `PRIMARY KEY (…)` and the like, which the grammar reads as a column and its unknown type. */
export function definitionHint(column: string, type: string): string | undefined {
  const words = `${column} ${type}`.toLowerCase();
  if (words === "primary key" || words === "unique key") return DEDUP("this kind of key");
  if (words === "foreign key") return NO_CONSTRAINTS;
  return /^(?:index|key) /.test(words) ? INDEX_OF_COLUMN : undefined;
}

const DATE = /\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?!\d)/y;

/** Recognises a date without quotes, which would be a subtraction of three numbers. */
export function bareDate(text: string, { kind, at, end }: Token): SqlError | undefined {
  DATE.lastIndex = at;
  if (kind !== "number" || text[end] !== "-" || end - at !== 4) return undefined;
  const date = DATE.exec(text)?.[0];
  return date === undefined ? undefined : new SqlError(
    `${date} without quotes is a subtraction of numbers: write the date as '${date}' (or with blanks, as in ${
      date.replaceAll("-", " - ")
    }, to subtract)`,
    at,
    SQLSTATE.syntax,
  );
}

/**
 * Patterns over the words around the position where reading stopped, in upper case, with `>` before the word there. The
 * first match is used. `back`: the mistake is this many words earlier.
 */
const PHRASES: readonly { words: RegExp; message: string; back?: number }[] = [
  {
    words: /(?:SELECT|DISTINCT) TOP > \d/,
    message: "TOP is not supported: put LIMIT 5 at the end for the first five rows",
    back: 1,
  },
  { words: /, \S+ > OFFSET/, message: "LIMIT already has two bounds: use LIMIT 5 OFFSET 10, or LIMIT 10, 15" },
  { words: / = > =/, message: "values are compared with a single =", back: 1 },
  {
    words: /SAMPLE BY \d+ > [A-Z]/,
    message: "an interval is written as one word: SAMPLE BY 1h (units are n, U, T, s, m, h, d, w, M, y)",
  },
  { words: / SAMPLE > \d/, message: "BY is missing after SAMPLE: SAMPLE BY 1h" },
  {
    words: /[-+] > \d+[A-Z]+\b/,
    message: NO_DURATION,
    back: 1,
  },
  {
    words: / INTERVAL > (?:'|\d)/,
    message: "INTERVAL values are not supported: dateadd('h', -1, ts) is one hour before ts",
    back: 1,
  },
  { words: /> ON (?:CONFLICT|DUPLICATE)/, message: DEDUP("ON CONFLICT") },
  { words: / (?:REPLACE|UPSERT|MERGE) > INTO/, message: DEDUP("REPLACE, UPSERT or MERGE"), back: 1 },
  { words: /> REPLACE INTO/, message: DEDUP("REPLACE") },
  {
    words: /> PRIMARY|> UNIQUE (?!INDEX)|ADD PRIMARY > KEY|ADD CONSTRAINT \S+ > (?:PRIMARY|UNIQUE)/,
    message: DEDUP("this kind of key"),
  },
  {
    words: /> (?:AUTO_INCREMENT|IDENTITY|GENERATED|REFERENCES|CHECK|DEFAULT)/,
    message: NO_CONSTRAINTS,
  },
  { words: /(?:ADD|,|\() UNIQUE > \(/, message: DEDUP("this kind of key"), back: 1 },
  { words: /ADD UNIQUE INDEX > /, message: DEDUP("this kind of key"), back: 2 },
  { words: /(?:ADD|,|\() CHECK > \(/, message: NO_CONSTRAINTS, back: 1 },
  { words: /(?:ADD|,|\() (?:INDEX|KEY) > \(/, message: INDEX_OF_COLUMN, back: 1 },
  { words: / SORT > BY/, message: "SORT BY is not supported: use ORDER BY", back: 1 },
  {
    words: /CREATE > (?:UNIQUE )?INDEX/,
    message: INDEX_OF_COLUMN,
  },
  {
    words: /CREATE > (?:DATABASE|SCHEMA)/,
    message: "there is only one database and one schema: create tables directly",
  },
  { words: /CREATE > (?:TEMP|TEMPORARY|UNLOGGED) /, message: "temporary tables are not supported" },
  {
    words: /CREATE > HYPERTABLE /,
    message: "CREATE TABLE … TIMESTAMP(ts) PARTITION BY DAY makes a table that is partitioned by time",
  },
  {
    words: /CREATE > (?:SEQUENCE|FUNCTION|PROCEDURE|TRIGGER|EXTENSION|TYPE|DOMAIN) /,
    message: "user-defined sequences, functions, triggers, extensions and types are not supported",
  },
  {
    words: /INSERT INTO \S+ SET \S+ > =|SET \S+ > =/,
    message: "INSERT INTO t (a, b) VALUES (1, 2) is how rows are written",
  },
  { words: /SHOW (?:INDEX|INDEXES|KEYS) > (?:FROM|ON|IN)/, message: "SHOW COLUMNS FROM t tells of indexes", back: 1 },
  { words: /SELECT > \[/, message: 'names are quoted with double quotes: "name"' },
  {
    words: /WITHIN > GROUP|GROUP > \(/,
    message: "WITHIN GROUP is not supported: approx_percentile(x, 0.5) computes percentiles",
  },
];

function DEDUP(what: string): string {
  return `${what} is not supported: a table with DEDUP UPSERT KEYS(ts, key) replaces rows that have the same keys`;
}

/** Returns the suggestion for the position where the grammar stopped. */
export function phraseHint(tokens: readonly Token[], index: number): { at: number; message: string } | undefined {
  const word = (place: number) => {
    const token = tokens[place];
    if (token === undefined) return "";
    return token.kind === "string" ? "'" : token.text.toUpperCase();
  };
  const around = ` ${[-4, -3, -2, -1].map((k) => word(index + k)).join(" ")} > ${
    [0, 1, 2].map((k) => word(index + k)).join(" ")
  } `;
  const phrase = PHRASES.find(({ words }) => words.test(around));
  if (phrase === undefined) return undefined;
  return { at: tokens[index - (phrase.back ?? 0)]!.at, message: phrase.message };
}

/** First words of statements of other databases, which parse as table names here. */
const STATEMENTS: Readonly<Record<string, string>> = {
  use: "there is only one database: USE is not needed",
  analyze: "there are no statistics to collect: ANALYZE is not needed (EXPLAIN ANALYZE runs a query)",
  help: "the reference is in docs/sql.md; SHOW TABLES lists the tables",
  replace: DEDUP("REPLACE"),
  upsert: DEDUP("UPSERT"),
  merge: DEDUP("MERGE"),
  load: "files are read by read_parquet('file'), or sent to /imp",
  exec: "procedures are not supported",
  call: "procedures are not supported",
  go: "statements end with a semicolon",
  quit: "the connection ends when the client closes it",
  exit: "the connection ends when the client closes it",
};

/** Text for an unknown table, or for an unknown statement. */
export function statementHint(firstWord: string): string | undefined {
  const key = firstWord.toLowerCase();
  return Object.hasOwn(STATEMENTS, key) ? STATEMENTS[key] : undefined;
}

/** Objects of SHOW in other databases. */
const SHOWN: Readonly<Record<string, string>> = {
  databases: "there is only one, qdb",
  schemas: "there is only one, public",
  processlist: "query_activity() lists what runs",
  variables: "SHOW PARAMETERS and SHOW ALL list settings",
  status: "see the metrics",
  users: "SHOW USERS is there with acl.enabled=true",
};

export function showHint(what: string): string | undefined {
  const key = what.toLowerCase();
  return Object.hasOwn(SHOWN, key) ? SHOWN[key] : undefined;
}
