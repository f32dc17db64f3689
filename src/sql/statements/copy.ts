/**
 * COPY: a CSV file of the import directory into a table, or a table or query into a Parquet file of the export directory. The server copies in the
 * background; the statement returns the number of the copy.
 */
import { CSV_DELIMITER, isCsvDelimiter } from "../../api.ts";
import { notSupported, SqlError, SQLSTATE } from "../../errors.ts";
import type { Name, Query, Statement } from "../ast.ts";
import { NO_NAMES } from "../binder/context.ts";
import type { Queries } from "../binder/query.ts";
import { type BoundStatement, PARTITION_UNITS } from "../plan.ts";
import { expectedLevel } from "../../types/parquet-levels.ts";
import { quotedName } from "../quoting.ts";
import { at, endOf, many, matched, name, optional, type Path, token, word } from "../tree-nodes.ts";
import { onlyName } from "./names.ts";
import type { CopyOrder, StatementKind } from "./statement.ts";

interface CopyOption {
  name: string;
  at: number;
  value: string;
  valueAt: number;
}

type Copied =
  | { action: "cancel"; id: string }
  | { action: "from"; table: Name; file: string; fileAt: number; options: CopyOption[] }
  | { action: "to"; table?: Name; query?: Query; text?: string; file: string; fileAt: number; options: CopyOption[] };

export type Copy = Statement & { kind: "copy" } & Copied;

type BoundCopy = BoundStatement<never> & { kind: "copy" } & (CopyOrder | { action: "cancel"; id: string });

const ON_ERROR: Readonly<Record<string, "skipCol" | "skipRow" | "abort">> = {
  skip_column: "skipCol",
  skip_row: "skipRow",
  abort: "abort",
};
const CODECS = ["uncompressed", "snappy", "gzip", "brotli", "zstd", "lz4_raw"];
/** Of Parquet files. */
export const PARQUET_CODEC_DEFAULT = "ZSTD";
const COLUMNS = {
  started: [{ name: "id", type: "STRING" }],
  cancelled: ["id", "status"].map((name) => ({ name, type: "STRING" })),
};

export const copy: StatementKind<Copy, BoundCopy> = {
  kind: "copy",
  form: {
    words: ["COPY"],
    grammar: String.raw`
  copy = "COPY" "<string>" "CANCEL"                               -- cancel
       | "COPY" tableName "FROM" "<string>" copyOptions?          -- from
       | "COPY" tableName "TO" "<string>" copyOptions?            -- table
       | "COPY" "(" query ")" "TO" "<string>" copyOptions?        -- query
       | "COPY" tableName copyColumns? ("FROM" | "TO") name any*  -- stream
  copyColumns = "(" name ("," name)* ")"
  copyOptions = "WITH" copyOption+
  copyOption = "PARTITION" "BY" name                              -- partition
             | "ON" "ERROR" name                                  -- error
             | name ("<string>" | "<number>" | "TRUE" | "FALSE" | name)  -- other`,
    actions: {
      copy_cancel: (copy, id, _cancel): Copy => ({ kind: "copy", at: at(copy), action: "cancel", id: token(id).text }),
      copy_from(copy, table, _from, file, options): Copy {
        const { text, at: fileAt } = token(file);
        const given = optional<CopyOption[]>(options) ?? [];
        return {
          kind: "copy",
          at: at(copy),
          action: "from",
          table: onlyName(table.tree() as Path),
          file: text,
          fileAt,
          options: given,
        };
      },
      copy_table(copy, table, _to, file, options): Copy {
        const { text, at: fileAt } = token(file);
        const given = optional<CopyOption[]>(options) ?? [];
        return {
          kind: "copy",
          at: at(copy),
          action: "to",
          table: onlyName(table.tree() as Path),
          file: text,
          fileAt,
          options: given,
        };
      },
      copy_query(copy, _open, query, _close, _to, file, options): Copy {
        const { text, at: fileAt } = token(file);
        return {
          kind: "copy",
          at: at(copy),
          action: "to",
          query: query.tree(),
          text: matched.source.text.slice(at(query), endOf(query)),
          file: text,
          fileAt,
          options: optional<CopyOption[]>(options) ?? [],
        };
      },
      copy_stream(copy, _table, _columns, direction, target, _rest): Copy {
        const { text, at: targetAt } = name(target);
        if (/^std(in|out)$/i.test(text)) {
          throw notSupported(`COPY ${word(direction).toUpperCase()} ${text.toUpperCase()}`, at(copy));
        }
        throw new SqlError(
          `COPY: found ${text}, expected the name of a file in single quotes`,
          targetAt,
          SQLSTATE.syntax,
        );
      },
      copyOptions: (_with, options) => many<CopyOption>(options),
      copyOption_partition: (first, _by, value) => optionOf("partition by", at(first), value),
      copyOption_error: (first, _error, value) => optionOf("on error", at(first), value),
      copyOption_other: (first, value) => optionOf(name(first).text.toLowerCase(), at(first), value),
    },
  },
  reference: {
    syntax:
      `COPY table FROM 'file' [WITH {header true | timestamp 'column' | format 'format' | delimiter 'character' | PARTITION BY unit | ON ERROR way} …]
COPY {table | (query)} TO 'file' WITH format parquet [compression_codec codec] [compression_level number] [data_page_size bytes]
COPY 'id' CANCEL`,
    summary:
      "Imports a CSV file of the import directory (`cairo.sql.copy.root`), or writes a Parquet file to the export directory " +
      "(`cairo.sql.copy.export.root`), in the background. Returns the id of the copy. `sys.text_import_log` and `sys.copy_export_log` have the events of copies since the server's start.",
  },
  category: "ddl",
  categoryOf: ({ action }) => action === "cancel" ? "session" : "ddl",
  requires: ["CREATE TABLE", "INSERT"],
  notInTransaction: "COPY",

  bind: (tree, queries) =>
    tree.action === "cancel"
      ? { kind: "copy", action: "cancel", id: idOf(tree) }
      : tree.action === "from"
      ? boundFrom(tree, queries)
      : boundTo(tree, queries),

  rows: ({ action }) => ({ columns: action === "cancel" ? COLUMNS.cancelled : COLUMNS.started, timestamp: -1 }),

  async execute(bound, run) {
    const { services: { copies }, identity, client } = run, by = { identity, client };
    const isCancel = bound.action === "cancel";
    const row = isCancel ? [bound.id, copies.cancel(bound.id, by)] : [await copies.start(bound, by)];
    return await run.query({
      node: "values",
      columns: isCancel ? COLUMNS.cancelled : COLUMNS.started,
      timestamp: -1,
      order: "none",
      rows: [row],
    });
  },
};

function optionOf(name: string, at: number, value: Parameters<typeof token>[0]): CopyOption {
  const { text, at: valueAt } = token(value);
  return { name, at, value: text, valueAt };
}

function idOf({ id, at }: Extract<Copy, { action: "cancel" }>): string {
  if (/^[0-9a-f]{1,16}$/i.test(id)) return id;
  throw new SqlError(`'${id}' is not the id of a copy: expected hexadecimal digits`, at, SQLSTATE.invalidParameter);
}

/** @throws if an option is given twice. */
function once(options: readonly CopyOption[]): void {
  const names = new Set<string>();
  for (const { name, at } of options) {
    if (names.has(name)) throw new SqlError(`COPY: ${name} is given twice`, at, SQLSTATE.syntax);
    names.add(name);
  }
}

function wrong({ name, value, valueAt }: CopyOption, expected: string): SqlError {
  return new SqlError(`COPY: ${name} is '${value}', expected ${expected}`, valueAt, SQLSTATE.invalidParameter);
}

function boundFrom(
  { at, table, file, fileAt, options }: Extract<Copy, { action: "from" }>,
  queries: Queries,
): BoundCopy {
  const { binding } = queries;
  once(options);
  checkFile(file, fileAt);
  const bound: BoundCopy = {
    kind: "copy",
    action: "from",
    table: table.text,
    file,
    hasHeader: false,
    onError: "skipCol",
  };
  for (const option of options) {
    const { value } = option, word = value.toLowerCase();
    switch (option.name) {
      case "header":
        if (word !== "true" && word !== "false") throw wrong(option, "true or false");
        bound.hasHeader = word === "true";
        break;
      case "timestamp":
      case "format":
        bound[option.name] = value;
        break;
      case "delimiter":
        if (!isCsvDelimiter(value)) throw wrong(option, CSV_DELIMITER);
        bound.delimiter = value;
        break;
      case "partition by": {
        const unit = PARTITION_UNITS.find((known) => known === value.toUpperCase());
        if (unit === undefined) throw wrong(option, PARTITION_UNITS.join(", "));
        bound.partitionBy = unit;
        break;
      }
      case "on error": {
        const known = Object.hasOwn(ON_ERROR, word) ? ON_ERROR[word] : undefined;
        if (known === undefined) throw wrong(option, "SKIP_ROW, SKIP_COLUMN or ABORT");
        bound.onError = known;
        break;
      }
      default:
        throw new SqlError(`COPY FROM has no option ${option.name}`, option.at, SQLSTATE.syntax);
    }
  }
  const found = binding.context.catalogue.table(table.text);
  if (bound.format !== undefined) {
    bound.timestamp ??= found?.schema.columns.find(({ id }) => id === found.schema.timestampId)?.name;
    if (bound.timestamp === undefined) {
      const message = "COPY: FORMAT is that of the column that TIMESTAMP names, or of the table's designated timestamp";
      throw new SqlError(message, at, SQLSTATE.syntax);
    }
  }
  if (found === undefined) binding.requires.add("CREATE TABLE", table.at);
  else binding.requires.add("INSERT", table.at, found.schema);
  return bound;
}

function boundTo(
  { at, table, query, text, file, fileAt, options }: Extract<Copy, { action: "to" }>,
  queries: Queries,
): BoundCopy {
  once(options);
  checkFile(file, fileAt);
  const format = options.find(({ name }) => name === "format");
  if (format === undefined) throw new SqlError("COPY TO needs a format: WITH FORMAT PARQUET", at, SQLSTATE.syntax);
  if (format.value.toLowerCase() !== "parquet") throw wrong(format, "PARQUET");
  // Finds mistakes at their places, and which permissions are needed. The copy binds its text again.
  let columns: readonly { name: string }[];
  if (query !== undefined) {
    const { plan, visible } = queries.bind(query, NO_NAMES);
    columns = plan.columns.slice(0, visible);
  } else {
    const { schema } = queries.binding.table({ ...table!, at });
    queries.binding.requires.ofColumns("SELECT", table!.at, schema).useTable();
    columns = schema.columns;
  }
  const bound: BoundCopy = {
    kind: "copy",
    action: "to",
    table: table?.text,
    text: text ?? `select * from ${quotedName(table!.text)}`,
    file,
  };
  let level: CopyOption | undefined;
  for (const option of options) {
    const { name, value } = option;
    const number = () => {
      if (!/^\d{1,9}$/.test(value)) throw wrong(option, "a number");
      return Number(value);
    };
    switch (name) {
      case "format":
        break;
      case "compression_codec":
        if (!CODECS.includes(value.toLowerCase())) throw wrong(option, CODECS.join(", "));
        bound.codec = value.toUpperCase();
        break;
      case "compression_level":
        bound.level = number();
        level = option;
        break;
      case "data_page_size":
        bound.pageSize = number();
        break;
      case "row_group_size":
        number(); // a group has the rows of one batch
        break;
      case "parquet_version":
        if (value !== "1" && value !== "2") throw wrong(option, "1 or 2");
        break; // files can be read by readers of either version
      case "statistics_enabled":
      case "raw_array_encoding":
        if (!/^(true|false)$/i.test(value)) throw wrong(option, "true or false");
        break;
      case "partition_by":
        if (!/^none$/i.test(value)) throw notSupported("COPY … PARTITION_BY", option.at);
        break;
      case "bloom_filter_columns": { // files have none, as readers do not need them
        const named = value.split(",").map((each) => each.trim()).filter((each) => each !== "");
        const isColumn = (each: string) => columns.some(({ name }) => name.toLowerCase() === each.toLowerCase());
        if (!named.every(isColumn)) throw wrong(option, "names of columns");
        break;
      }
      case "bloom_filter_fpp":
        if (!(Number(value) > 0 && Number(value) < 1)) throw wrong(option, "a number between 0 and 1");
        break;
      default:
        throw new SqlError(`COPY TO has no option ${name}`, option.at, SQLSTATE.syntax);
    }
  }
  const expected = level === undefined ? undefined : expectedLevel(bound.codec ?? PARQUET_CODEC_DEFAULT, bound.level!);
  if (expected !== undefined) throw wrong(level!, expected);
  return bound;
}

/** Files are in the directory of imports or exports. */
function checkFile(file: string, at: number): void {
  const isInside = !/^([\\/]|[A-Za-z]:)|\0/.test(file) && !file.split(/[\\/]/).includes("..") && file !== "";
  if (!isInside) {
    throw new SqlError(`COPY: ${file} is not a path in the directory of copies`, at, SQLSTATE.insufficientPrivilege);
  }
}
