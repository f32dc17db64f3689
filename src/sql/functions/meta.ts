/**
 * Functions about the server and about values: types, versions, hashes, and functions that PostgreSQL's clients call.
 */
import { createHash } from "node:crypto";
import { VERSION } from "../../version.ts";
import { SqlError, SQLSTATE } from "../../errors.ts";
import { NULL_I32, NULL_I64, tagOfName, typeOf } from "../../types/mod.ts";
import { settingOf } from "../client-settings.ts";
import type { FunctionContext, FunctionEntry } from "./entry.ts";
import { sizeOfModifier } from "../../types/pg-modifiers.ts";
import { elementsOf, partsOfName, quotedElement, splitText } from "../../types/pg-arrays.ts";
import { batchEntry } from "./batch-entry.ts";
import { type Network, readNetwork } from "./networks.ts";
import { Pace } from "./pace.ts";

/** The version that the server reports to PostgreSQL's clients. */
const POSTGRES_VERSION = "12.3";

/** Functions that return arrays in PostgreSQL's text form. */
export const TEXT_ARRAY_FUNCTIONS: ReadonlySet<string> = new Set(["current_schemas", "string_to_array", "parse_ident"]);

/** VARCHAR for a VARCHAR argument, otherwise STRING. */
const sameText = ([type]: string[]): string => type === "VARCHAR" ? "VARCHAR" : "STRING";

function reload(name: string, summary: string): FunctionEntry {
  return batchEntry(name, [], "BOOLEAN", summary, undefined, [], {
    volatility: "volatile",
    permission: "SYSTEM ADMIN",
    served: (server) => server.reloadConfig(),
  });
}

/** A function that returns the same text in every row. */
function said(
  name: string,
  summary: string,
  text: (context: FunctionContext) => string,
  args: FunctionEntry["args"] = [],
): FunctionEntry {
  return batchEntry(
    name,
    args,
    "STRING",
    summary,
    (_, out, rowCount, context) => {
      for (let row = 0; row < rowCount; row++) out.setText(row, text(context));
    },
    [],
    { volatility: "stable" },
  );
}

const any = (name: string, optional = false) => ({ name, type: "any", optional });

/** Bytes that are hashed between two polls. They are copied, because node:crypto takes no shared memory. */
const HASH_PIECE_BYTES = 65_536;
/** Of a hash without its bytes. */
const HASH_STEPS = 64;

function hashOf(name: string, bytes: Uint8Array, pace: Pace): string {
  const hash = createHash(name);
  for (let at = 0; at < bytes.length; at += HASH_PIECE_BYTES) {
    const piece = bytes.slice(at, at + HASH_PIECE_BYTES);
    hash.update(piece);
    pace.spend(piece.length);
  }
  return hash.digest("hex");
}

const hashes = ["md5", "sha1", "sha256"].flatMap((name) =>
  ["text", "BINARY"].map((type) =>
    batchEntry(
      name,
      [{ name: type === "text" ? "text" : "bytes", type }],
      "VARCHAR",
      `The ${name} hash of the ${type === "text" ? "text's UTF-8" : "bytes"} in hexadecimal digits.`,
      ([column], out, rowCount, context) => {
        const pace = new Pace(context);
        for (let row = 0; row < rowCount; row++) {
          const bytes = column.bytes(row);
          out.setText(row, bytes === undefined ? undefined : hashOf(name, bytes, pace));
          pace.spend(HASH_STEPS);
        }
      },
      name === "md5" && type === "text" ? [["md5('abc')", "900150983cd24fb0d6963f7d28e17f72"]] : [],
    )
  )
);

/** Writes 1 for the addresses in the network, and 0 for the others and nulls. */
function markInside(addresses: Int32Array, out: Uint8Array, rowCount: number, { address, mask }: Network): void {
  for (let row = 0; row < rowCount; row++) {
    out[row] = addresses[row] !== 0 && ((addresses[row] ^ address) & mask) === 0 ? 1 : 0;
  }
}

/**
 * Tests whether the address is in the network. `strictly` excludes the network itself. The network is the first or the
 * second argument.
 */
function subnet(name: string, networkFirst: boolean, strictly: boolean, summary: string): FunctionEntry {
  const address = { name: "address", type: "IPv4" }, network = { name: "network", type: "text" };
  return batchEntry(
    name,
    networkFirst ? [network, address] : [address, network],
    "BOOLEAN",
    summary,
    (columns, out, rowCount) => {
      const addresses = columns[networkFirst ? 1 : 0], networks = columns[networkFirst ? 0 : 1];
      if (networks.isConstant) {
        const text = rowCount === 0 ? undefined : networks.text(0);
        const network = text === undefined ? undefined : readNetwork(text);
        if (network === undefined || (strictly && network.bits === 32)) out.values.fill(0, 0, rowCount);
        else markInside(addresses.values, out.values, rowCount, network);
        return;
      }
      let known: { text: string | undefined; network: ReturnType<typeof readNetwork> } | undefined;
      for (let row = 0; row < rowCount; row++) {
        const text = networks.text(row);
        if (known === undefined || known.text !== text) {
          known = { text, network: text === undefined ? undefined : readNetwork(text) };
        }
        const value = addresses.values[row], found = known.network;
        out.values[row] = found !== undefined && value !== 0 && ((value ^ found.address) & found.mask) === 0 &&
            !(strictly && found.bits === 32)
          ? 1
          : 0;
      }
    },
    [],
    {
      check: (constants) => {
        const at = networkFirst ? 0 : 1;
        const text = constants[at];
        return typeof text === "string" && readNetwork(text) === undefined
          ? { argument: at, message: `invalid network '${text}': expected an address with /0 to /32` }
          : undefined;
      },
    },
  );
}

/** A function that returns true in every row, for clients' queries about privileges and visibility. */
function always(name: string, argCount: number, summary: string): FunctionEntry {
  const args = Array.from({ length: argCount }, (_, index) => any(`arg${index + 1}`, index > 0));
  return batchEntry(name, args, "BOOLEAN", summary, (_, out, rowCount) => out.values.fill(1, 0, rowCount));
}

/** A function that returns NULL in every row, for objects that do not exist here. */
function nothing(name: string, argCount: number, summary: string): FunctionEntry {
  const args = Array.from({ length: argCount }, (_, index) => any(`arg${index + 1}`, index > 0));
  return batchEntry(name, args, "STRING", summary, (_, out, rowCount) => {
    for (let row = 0; row < rowCount; row++) out.setText(row, undefined);
  });
}

/** Each unit is used up to 10,239 of it. */
function prettySize(bytes: bigint): string {
  let size = bytes, unit = 0;
  const units = ["bytes", "kB", "MB", "GB", "TB", "PB"];
  for (; (size < 0n ? -size : size) >= 10_240n && unit < units.length - 1; unit++) size = (size + 512n) / 1024n;
  return `${size} ${units[unit]}`;
}

/** Maximum length, because the pattern is rewritten for each row. */
const PATTERN_MAX = 65_536;

function likePattern(pattern: string, escape: string, at: number): string {
  if (escape.length > 2 || [...escape].length > 1) {
    throw new SqlError(`ESCAPE needs a single character: found '${escape.slice(0, 40)}'`, at, "22025");
  }
  if (pattern.length > PATTERN_MAX) {
    const message = `a pattern with ESCAPE can have at most ${PATTERN_MAX} characters: found ${pattern.length}`;
    throw new SqlError(message, at, SQLSTATE.programLimitExceeded);
  }
  let result = "";
  const characters = [...pattern];
  for (let i = 0; i < characters.length; i++) {
    const character = characters[i];
    if (character !== escape) result += character === "\\" ? "\\\\" : character;
    else if (i + 1 < characters.length) result += `\\${characters[++i]}`;
    else throw new SqlError(`the pattern ends in the escape character '${escape}'`, at, "22025");
  }
  return result;
}

/** Names of column types, by PostgreSQL's type number. */
const PG_TYPE_NAMES: Record<number, string> = {
  16: "boolean",
  17: "bytea",
  20: "bigint",
  21: "smallint",
  23: "integer",
  26: "oid",
  700: "real",
  701: "double precision",
  1015: "character varying[]",
  1022: "double precision[]",
  1042: "character",
  1043: "character varying",
  1082: "date",
  1114: "timestamp without time zone",
  1700: "numeric",
  2950: "uuid",
};

/** Called by psql, drivers and tools when they inspect the server. All also exist with the schema `pg_catalog`. */
const clientFunctions: FunctionEntry[] = [
  always("pg_function_is_visible", 1, "True: every function is visible."),
  always("pg_collation_is_visible", 1, "True: every collation is visible."),
  always("pg_type_is_visible", 1, "True: every type is visible."),
  always("has_schema_privilege", 3, "True, whatever the permissions. SHOW PERMISSIONS lists them."),
  always("has_table_privilege", 3, "True, whatever the permissions. SHOW PERMISSIONS lists them."),
  always("has_any_column_privilege", 3, "True, whatever the permissions. SHOW PERMISSIONS lists them."),
  always("has_database_privilege", 3, "True, whatever the permissions. SHOW PERMISSIONS lists them."),
  always("pg_column_is_updatable", 3, "True: views are not told apart from tables."),
  nothing("obj_description", 2, "NULL: objects have no comments."),
  nothing("pg_my_temp_schema", 0, "NULL: there are no temporary tables."),
  nothing("shobj_description", 2, "NULL: objects have no comments."),
  nothing("col_description", 2, "NULL: columns have no comments."),
  nothing("pg_get_expr", 3, "NULL: columns have no defaults."),
  nothing("pg_get_constraintdef", 2, "NULL: there are no constraints."),
  nothing("pg_get_indexdef", 3, "NULL: the catalogues list no indexes."),
  nothing("pg_get_partkeydef", 1, "NULL: `tables()` has the partitioning of tables."),
  nothing("pg_get_viewdef", 2, "NULL: the texts of views are in `views()`."),
  nothing("pg_tablespace_location", 1, "NULL: there are no tablespaces."),
  nothing("pg_get_function_result", 1, "NULL: functions are listed by `functions()`."),
  nothing("pg_get_function_arguments", 1, "NULL: functions are listed by `functions()`."),
  nothing("pg_get_statisticsobjdef_columns", 1, "NULL: there are no extended statistics."),
  nothing("pg_get_serial_sequence", 2, "NULL: there are no sequences."),
  batchEntry(
    "pg_size_pretty",
    [{ name: "bytes", type: "LONG" }],
    "STRING",
    "A number of bytes as PostgreSQL writes it.",
    ([bytes], out, rowCount) => {
      for (let row = 0; row < rowCount; row++) {
        const value = bytes.values[row] as bigint;
        out.setText(row, value === NULL_I64 ? undefined : prettySize(value));
      }
    },
    [["pg_size_pretty(1000)", "1000 bytes"], ["pg_size_pretty(1000000)", "977 kB"]],
  ),
  ...["pg_table_size", "pg_relation_size", "pg_total_relation_size", "pg_database_size"].map((name) =>
    batchEntry(
      name,
      [any("table")],
      "LONG",
      "NULL: sizes of tables are in `table_storage()`.",
      (_, out, rowCount) => out.values.fill(NULL_I64, 0, rowCount),
    )
  ),
  batchEntry(
    "quote_array_element",
    [{ name: "text", type: "text" }],
    "STRING",
    "The text as an element of an array in PostgreSQL's text form.",
    ([column], out, rowCount) => {
      for (let row = 0; row < rowCount; row++) out.setText(row, quotedElement(column.text(row)));
    },
    [["quote_array_element('a b')", '"a b"'], ["quote_array_element('a')", "a"]],
  ),
  batchEntry(
    "like_pattern",
    [{ name: "pattern", type: "text" }, { name: "escape", type: "text" }],
    "STRING",
    "The pattern of LIKE … ESCAPE with the backslash as escape character. With an empty `escape`, no character escapes.",
    ([pattern, escape], out, rowCount, { at, poll }) => {
      for (let row = 0; row < rowCount; row++) {
        poll();
        const text = pattern.text(row), character = escape.text(row);
        const given = text === undefined || character === undefined ? undefined : likePattern(text, character, at);
        out.setText(row, given);
      }
    },
    [["like_pattern('50/%_', '/')", "50\\%_"]],
  ),
  batchEntry(
    "is_element",
    [{ name: "text", type: "text" }, { name: "array", type: "text" }],
    "BOOLEAN",
    "True if the text is an element of an array in PostgreSQL's text form. `x = ANY(array)` calls it.",
    ([text, array], out, rowCount, { poll }) => {
      for (let row = 0; row < rowCount; row++) {
        poll();
        const wanted = text.text(row), elements = array.text(row);
        out.values[row] = wanted !== undefined && elements !== undefined && elementsOf(elements).includes(wanted)
          ? 1
          : 0;
      }
    },
    [["is_element('b', '{a,b}')", true], ["is_element('c', '{a,b}')", false]],
  ),
  batchEntry(
    "array_element",
    [{ name: "array", type: "text" }, { name: "index", type: "LONG" }],
    "STRING",
    "An element of an array in PostgreSQL's text form, counted from 1. NULL if there is no such element.",
    ([array, index], out, rowCount, { poll }) => {
      for (let row = 0; row < rowCount; row++) {
        poll();
        const text = array.text(row), at = index.values[row] as bigint;
        out.setText(row, text === undefined || at < 1n ? undefined : elementsOf(text)[Number(at) - 1]);
      }
    },
    [["array_element('{a,NULL,\"b,c\"}', 3)", "b,c"], ["array_element('{a}', 2)", null]],
  ),
  ...([
    ["array_lower", "1, the index of the first element", () => 1, 1],
    ["array_upper", "The number of elements", (count: number) => count, 2],
  ] as const).map(([name, what, bound, example]) =>
    batchEntry(
      name,
      [{ name: "array", type: "text" }, { name: "dimension", type: "LONG" }],
      "LONG",
      `${what} of a one-dimensional array in PostgreSQL's text form. NULL if it is empty.`,
      ([array, dimension], out, rowCount, { poll }) => {
        for (let row = 0; row < rowCount; row++) {
          poll();
          const text = array.text(row), count = text === undefined ? 0 : elementsOf(text).length;
          out.values[row] = count === 0 || dimension.values[row] !== 1n ? NULL_I64 : BigInt(bound(count));
        }
      },
      [[`${name}('{a,b}', 1)`, example]],
    )
  ),
  batchEntry(
    "current_schemas",
    [{ name: "with_implicit", type: "BOOLEAN" }],
    "STRING",
    "The schemas on the search path.",
    ([implicit], out, rowCount) => {
      for (let row = 0; row < rowCount; row++) {
        out.setText(row, implicit.values[row] === 1 ? "{pg_catalog,public}" : "{public}");
      }
    },
    [["current_schemas(true)", "{pg_catalog,public}"]],
  ),
  batchEntry(
    "string_to_array",
    [{ name: "text", type: "text" }, { name: "separator", type: "text" }],
    "STRING",
    "The parts of a text between separators, as an array in PostgreSQL's text form. Without a separator its characters.",
    ([column, separator], out, rowCount, { poll }) => {
      for (let row = 0; row < rowCount; row++) {
        poll();
        const text = column.text(row);
        out.setText(row, text === undefined ? undefined : splitText(text, separator.text(row)));
      }
    },
    [["string_to_array('a,b c', ',')", '{a,"b c"}'], ["string_to_array('ab', null)", "{a,b}"]],
  ),
  batchEntry(
    "parse_ident",
    [{ name: "name", type: "text" }],
    "STRING",
    "The parts of a name with dots, as an array in PostgreSQL's text form. Parts without double quotes are in lower case.",
    ([column], out, rowCount, { at, poll }) => {
      for (let row = 0; row < rowCount; row++) {
        poll();
        const text = column.text(row), parts = text === undefined ? undefined : partsOfName(text);
        if (text !== undefined && parts === undefined) {
          throw new SqlError(`parse_ident: '${text.slice(0, 100)}' is not a name`, at, SQLSTATE.invalidParameter);
        }
        out.setText(row, parts);
      }
    },
    [["parse_ident('Public.\"My Table\"')", '{public,"My Table"}']],
  ),
  batchEntry(
    "array_to_string",
    [{ name: "array", type: "text" }, { name: "separator", type: "text" }],
    "STRING",
    "The elements of an array in PostgreSQL's text form, joined by a separator. Nulls are omitted.",
    ([array, separator], out, rowCount, { poll }) => {
      for (let row = 0; row < rowCount; row++) {
        poll();
        const text = array.text(row), between = separator.text(row);
        out.setText(
          row,
          text === undefined || between === undefined
            ? undefined
            : elementsOf(text).filter((e) => e !== undefined).join(between),
        );
      }
    },
    [["array_to_string('{a,NULL,\"b,c\"}', '; ')", "a; b,c"]],
  ),
  batchEntry(
    "array_length",
    [{ name: "array", type: "text" }, { name: "dimension", type: "INT" }],
    "INT",
    "The number of elements of an array in PostgreSQL's text form; NULL if it has none.",
    ([array, dimension], out, rowCount, { poll }) => {
      for (let row = 0; row < rowCount; row++) {
        poll();
        const text = array.text(row), count = text === undefined ? 0 : elementsOf(text).length;
        out.values[row] = count === 0 || dimension.values[row] !== 1 ? NULL_I32 : count;
      }
    },
    [["array_length('{a,NULL,c}', 1)", 3], ["array_length('{}', 1)", null]],
  ),
  batchEntry(
    "is_single_row",
    [{ name: "count", type: "LONG" }],
    "BOOLEAN",
    "True. Fails if a sub-query used as a value returns more than one row.",
    ([count], out, rowCount, { at }) => {
      for (let row = 0; row < rowCount; row++) {
        if (count.values[row] > 1n) {
          throw new SqlError("a sub-query used as a value returns more than one row", at, "21000");
        }
        out.values[row] = 1;
      }
    },
    [["is_single_row(1)", true]],
  ),
  said("pg_encoding_to_char", "UTF8, the encoding of all texts.", () => "UTF8", [any("encoding")]),
  batchEntry(
    "pg_is_in_recovery",
    [],
    "BOOLEAN",
    "False: a server that answers is not in recovery.",
    (_, out, rowCount) => out.values.fill(0, 0, rowCount),
  ),
  batchEntry(
    "pg_backend_pid",
    [],
    "INT",
    "The number of the connection in pg_stat_activity; 0 over HTTP.",
    (_, out, rowCount) => out.values.fill(0, 0, rowCount),
    [],
    { volatility: "stable" },
  ),
  batchEntry(
    "current_setting",
    [{ name: "name", type: "text" }, any("missing_ok", true)],
    "STRING",
    "A setting of the session, as in SHOW. An unknown name gives an empty text; with `missing_ok` NULL if it is true, or an error if it is false.",
    ([name], out, rowCount) => {
      for (let row = 0; row < rowCount; row++) {
        const text = name.text(row);
        out.setText(row, text === undefined ? undefined : String(settingOf(text)?.value ?? ""));
      }
    },
    [["current_setting('server_encoding')", "UTF8"], ["current_setting('jit')", ""]],
  ),
  batchEntry(
    "set_config",
    [{ name: "name", type: "text" }, { name: "value", type: "text" }, { name: "is_local", type: "BOOLEAN" }],
    "STRING",
    "Returns the value without setting it. Use SET to change a setting.",
    ([_name, value], out, rowCount) => {
      for (let row = 0; row < rowCount; row++) out.setText(row, value.text(row));
    },
    [["set_config('jit', 'off', false)", "off"]],
  ),
  batchEntry(
    "to_regtype",
    [{ name: "name", type: "text" }],
    "INT",
    "PostgreSQL's number of the type with this name; NULL if there is none.",
    ([name], out, rowCount) => {
      for (let row = 0; row < rowCount; row++) {
        const tag = tagOfName(name.text(row) ?? "");
        out.values[row] = tag === undefined ? NULL_I32 : typeOf(tag).pgOid;
      }
    },
    [["to_regtype('double precision')", 701], ["to_regtype('hstore')", null]],
  ),
  batchEntry(
    "format_type",
    [{ name: "oid", type: "INT" }, { name: "typmod", type: "INT" }],
    "STRING",
    "PostgreSQL's name of the type with this number, and the size that its modifier contains.",
    ([oid, typmod], out, rowCount) => {
      for (let row = 0; row < rowCount; row++) {
        const type = oid.values[row] as number, name = PG_TYPE_NAMES[type];
        out.setText(row, name === undefined ? "???" : name + sizeOfModifier(type, typmod.values[row] as number));
      }
    },
    [["format_type(1114, null)", "timestamp without time zone"], ["format_type(1700, 655366)", "numeric(10,2)"]],
  ),
];

export const metaFunctions: FunctionEntry[] = [
  batchEntry("typeof", [any("value")], sameText, "The name of the value's type.", ([column], out, rowCount) => {
    const name = column.type === "NULL" ? "NULL" : typeOf(column.type).name;
    for (let row = 0; row < rowCount; row++) out.setText(row, name);
  }, [["typeOf(1L)", "LONG"], ["typeOf(null)", "NULL"]]),
  said(
    "version",
    "The version of PostgreSQL whose features clients may expect.",
    () => `PostgreSQL ${POSTGRES_VERSION}, Sundial ${VERSION}`,
  ),
  said("build", "The name and the version of this server.", () => `Sundial ${VERSION}`),
  said("current_database", "The name of the only database.", () => "qdb"),
  said("current_catalog", "The name of the only database.", () => "qdb"),
  said("current_schema", "The name of the only schema.", () => "public"),
  said("current_user", "The name of the user of the session.", (context) => context.user),
  said("session_user", "The name of the user of the session.", (context) => context.user),
  said("user", "The name of the user of the session.", (context) => context.user),
  said(
    "pg_advisory_unlock_all",
    "Does nothing, because there are no locks. Connection pools of drivers call it.",
    () => "",
  ),
  said("pg_get_userbyid", "The name of the user of the session, for any id.", (context) => context.user, [any("id")]),
  batchEntry(
    "pg_table_is_visible",
    [any("table")],
    "BOOLEAN",
    "True: every table is visible.",
    (_, out, rowCount) => out.values.fill(1, 0, rowCount),
  ),
  ...clientFunctions,
  reload(
    "reload_config",
    "Reads server.conf and the TLS certificates again. True if a change takes effect without a restart. " +
      "`pending_config()` lists settings that need a restart.",
  ),
  reload("reload_tls", "The same as `reload_config()`."),
  ...hashes,
  subnet("<<", false, true, "True if the network contains the address and is larger than it."),
  subnet("<<=", false, false, "True if the network contains the address."),
  subnet(">>", true, true, "True if the network contains the address and is larger than it."),
  subnet(">>=", true, false, "True if the network contains the address."),
  batchEntry(
    "netmask",
    [{ name: "network", type: "text" }],
    "IPv4",
    "The mask of a network.",
    ([column], out, rowCount) => {
      for (let row = 0; row < rowCount; row++) {
        const text = column.text(row);
        out.values[row] = text === undefined ? 0 : readNetwork(text)?.mask ?? 0;
      }
    },
    [["netmask('10.1.2.3/24')", "255.255.255.0"]],
  ),
];
