/** Rows of `pg_catalog` and `information_schema`, which describe tables and views as PostgreSQL does. */
import { ARRAY_IN, BASE_TYPE, CLIENT_SETTINGS, type FilledTable, settingsOf, systemClassOid } from "../sql/mod.ts";
import type { Asker } from "./statements.ts";
import { typeOf, type Value } from "../types/mod.ts";
import { modifierOf } from "../types/pg-modifiers.ts";
import { arrayDimensions, decimalOf } from "../types/wide.ts";

const PG_CATALOG = 11, PUBLIC = 2200, OWNER = 1;
const DATABASE = "qdb", SCHEMA = "public";
/** The id of `pg_class`. */
const PG_CLASS = 1259;

/** A table or a view. */
export interface Relation {
  oid: number;
  name: string;
  columns: readonly { name: string; type: string }[];
  isView: boolean;
}

interface PgType {
  oid: number;
  name: string;
  size: number;
  /** The id of its array type, or null. */
  array: number | null;
  element?: number;
  category: string;
  /** Its name in information_schema. */
  word: string;
}

type PgFunction = readonly [oid: number, name: string];

/**
 * PostgreSQL's functions that read a type's text, and its binary form. Drivers tell types apart by the first, and Npgsql joins types with the
 * second.
 */
const READERS: Readonly<Record<string, readonly [text: PgFunction, binary?: PgFunction]>> = {
  bool: [[1242, "boolin"], [2436, "boolrecv"]],
  binary: [[1244, "byteain"], [2412, "bytearecv"]],
  name: [[34, "namein"], [2422, "namerecv"]],
  int8: [[460, "int8in"], [2408, "int8recv"]],
  int2: [[38, "int2in"], [2404, "int2recv"]],
  int4: [[42, "int4in"], [2406, "int4recv"]],
  oid: [[1798, "oidin"], [2418, "oidrecv"]],
  float4: [[200, "float4in"], [2424, "float4recv"]],
  float8: [[214, "float8in"], [2426, "float8recv"]],
  bpchar: [[1044, "bpcharin"], [2430, "bpcharrecv"]],
  varchar: [[1046, "varcharin"], [2432, "varcharrecv"]],
  date: [[1084, "date_in"], [2468, "date_recv"]],
  timestamp: [[1312, "timestamp_in"], [2474, "timestamp_recv"]],
  numeric: [[1701, "numeric_in"], [2460, "numeric_recv"]],
  internal: [[2304, "internal_in"]],
  uuid: [[2952, "uuid_in"], [2961, "uuid_recv"]],
};

const type = (
  oid: number,
  name: string,
  size: number,
  array: number | null,
  category: string,
  word = name,
  element?: number,
): PgType => ({ oid, name, size, array, category, word, element });

const TYPES: PgType[] = [
  type(16, "bool", 1, 1000, "B", "boolean"),
  type(17, "binary", -1, null, "U", "bytea"),
  // No column has this type. JDBC reads the maximum length of names from it.
  type(19, "name", 64, null, "S"),
  type(20, "int8", 8, 1016, "N", "bigint"),
  type(21, "int2", 2, 1005, "N", "smallint"),
  type(23, "int4", 4, 1007, "N", "integer"),
  type(26, "oid", 4, null, "N"),
  type(700, "float4", 4, 1021, "N", "real"),
  type(701, "float8", 8, 1022, "N", "double precision"),
  type(1015, "_varchar", -1, null, "A", "ARRAY", 1043),
  type(1022, "_float8", -1, null, "A", "unknown", 701),
  type(1042, "bpchar", 2, null, "Z", "character"),
  type(1043, "varchar", -1, 1015, "S", "character varying"),
  type(1082, "date", 8, null, "D"),
  type(1114, "timestamp", 8, 1115, "D", "timestamp without time zone"),
  type(1700, "numeric", -1, null, "N"),
  type(2281, "internal", 8, null, "P"),
  type(2950, "uuid", 16, null, "U", "character varying"),
];
/** Npgsql recognises arrays by the function for the binary form. */
const ARRAY_READERS: readonly [text: PgFunction, binary: PgFunction] = [[ARRAY_IN, "array_in"], [2400, "array_recv"]];
const readersOf = (name: string, category: string) => (category === "A" ? ARRAY_READERS : READERS[name]) ?? [];

const TYPE_BY_OID = new Map(TYPES.map((each) => [each.oid, each]));

/** `relations`: asked for them only if the source describes them, because views have to be compiled for that. */
type Rows = (relations: () => readonly Relation[], asker: Asker) => Record<string, Value>[];

const forColumns = (
  relations: () => readonly Relation[],
  row: (relation: Relation, column: Relation["columns"][number], index: number) => Record<string, Value>,
) => relations().flatMap((relation) => relation.columns.map((column, index) => row(relation, column, index)));

/** The binary digits of numbers. */
const NUMBER_BITS: Readonly<Record<string, number>> = { int2: 16, int4: 32, int8: 64, float4: 24, float8: 53 };

const columnRow = (relation: Relation, name: string, index: number, word: string) => ({
  table_catalog: DATABASE,
  table_schema: SCHEMA,
  table_name: relation.name,
  column_name: name,
  ordinal_position: index,
  is_nullable: "yes",
  data_type: word,
});

/** Values of columns of `pg_class` that are the same in all rows, unless a row says otherwise. */
const CLASS = {
  relowner: 0,
  reltuples: -1,
  relpersistence: "p",
  relkind: "r",
  relreplident: "d",
  relispopulated: true,
};

/** By full name of the table. Columns that a row omits are 0, false or NULL. */
const SOURCES: Record<Exclude<FilledTable, "pg_catalog.pg_stat_activity">, Rows> = {
  "pg_catalog.pg_type": () =>
    TYPES.map(({ oid, name, size, array, element, category }) => ({
      oid,
      typname: name,
      typarray: array,
      typelem: element ?? 0,
      typnamespace: PG_CATALOG,
      typtype: BASE_TYPE,
      typcategory: category,
      typinput: readersOf(name, category)[0]?.[0] ?? 0,
      typreceive: readersOf(name, category)[1]?.[0] ?? 0,
      typlen: size,
      typtypmod: -1,
      typowner: OWNER,
      typdelim: ",",
      typisdefined: true,
      typalign: "c",
      typstorage: "p",
    })),
  /** Only types refer to them: without a kind, JDBC's list of functions leaves them out. */
  "pg_catalog.pg_proc": () =>
    [ARRAY_READERS, ...Object.values(READERS)].flat().filter((found) => found !== undefined).map(([oid, name]) => ({
      oid,
      proname: name,
      pronamespace: PG_CATALOG,
      proowner: OWNER,
      pronargs: 1,
      provolatile: "i",
    })),
  "pg_catalog.pg_class": (relations) => [
    {
      ...CLASS,
      oid: PG_CLASS,
      relname: "pg_class",
      relnamespace: PG_CATALOG,
      relpersistence: "u",
      relispopulated: false,
    },
    ...relations().map(({ oid, name, columns }) => ({
      ...CLASS,
      oid,
      relname: name,
      relnamespace: PUBLIC,
      relnatts: columns.length,
    })),
  ],
  "pg_catalog.pg_namespace": () => [
    { nspname: "pg_catalog", oid: PG_CATALOG, nspowner: OWNER },
    { nspname: SCHEMA, oid: PUBLIC, nspowner: OWNER },
  ],
  "pg_catalog.pg_attribute": (relations) =>
    forColumns(relations, ({ oid }, column, index) => {
      const { pgOid } = typeOf(column.type);
      return {
        attrelid: oid,
        attname: column.name,
        attnum: index + 1,
        atttypid: pgOid,
        atttypmod: modifierOf(column.type),
        attlen: TYPE_BY_OID.get(pgOid)?.size ?? -1,
        attidentity: "",
        attgenerated: "",
        attndims: arrayDimensions(column.type),
        attstorage: "p",
        attstattarget: -1,
      };
    }),
  "pg_catalog.pg_database": () => [{
    oid: 1,
    datname: DATABASE,
    datdba: OWNER,
    encoding: 6,
    datcollate: "en_US.UTF-8",
    datctype: "en_US.UTF-8",
    datallowconn: true,
    datconnlimit: -1,
  }],
  "pg_catalog.pg_roles": (_relations, { identity }) => [{
    oid: OWNER,
    rolname: identity.name,
    rolsuper: true,
    rolinherit: true,
    rolcanlogin: true,
    rolconnlimit: -1,
    rolcreatedb: true,
  }],
  "pg_catalog.pg_user": (_relations, { identity }) => [{
    usename: identity.name,
    usesysid: OWNER,
    usecreatedb: true,
    usesuper: true,
  }],
  "pg_catalog.pg_tables": (relations) =>
    relations().filter(({ isView }) => !isView).map(({ name }) => ({
      schemaname: SCHEMA,
      tablename: name,
      tableowner: SCHEMA,
    })),
  "pg_catalog.pg_settings": (_relations, { client }) =>
    settingsOf(client?.settings).map(({ name, value, type, isFixed, summary }) => ({
      name,
      setting: String(value),
      category: isFixed ? "Preset Options" : "Client Connection Defaults",
      short_desc: summary,
      context: isFixed ? "internal" : "user",
      vartype: type === "STRING" ? "string" : "integer",
      boot_val: String(CLIENT_SETTINGS.get(name.toLowerCase())?.value ?? ""),
      reset_val: String(value),
      source: CLIENT_SETTINGS.get(name.toLowerCase())?.value === value ? "default" : "session",
    })),
  "information_schema.schemata": () => [{ catalog_name: DATABASE, schema_name: SCHEMA, schema_owner: SCHEMA }],
  "information_schema.character_sets": () => [{
    character_set_name: "UTF8",
    character_repertoire: "UCS",
    form_of_use: "UTF8",
    default_collate_catalog: DATABASE,
  }],
  "information_schema.tables": (relations) =>
    relations().map(({ name }) => ({
      table_catalog: DATABASE,
      table_schema: SCHEMA,
      table_name: name,
      table_type: "BASE TABLE",
      is_insertable_into: true,
    })),
  "information_schema.columns": (relations) =>
    forColumns(relations, (relation, column, index) => {
      const type = TYPE_BY_OID.get(typeOf(column.type).pgOid);
      const decimal = decimalOf(column.type), bits = NUMBER_BITS[type?.name ?? ""];
      return {
        ...columnRow(relation, column.name, index, type?.word ?? "unknown"),
        character_maximum_length: null,
        character_octet_length: null,
        numeric_precision: decimal?.precision ?? bits ?? null,
        numeric_precision_radix: decimal !== undefined ? 10 : bits !== undefined ? 2 : null,
        numeric_scale: decimal?.scale ?? (type?.name.startsWith("int") ? 0 : null),
        datetime_precision: type?.name === "timestamp" ? 6 : null,
        interval_precision: null,
        udt_catalog: DATABASE,
        udt_schema: "pg_catalog",
        udt_name: type?.name ?? null,
        maximum_cardinality: null,
        dtd_identifier: String(index + 1),
        is_self_referencing: "NO",
        is_identity: "NO",
        identity_cycle: "NO",
        is_generated: "NEVER",
        is_updatable: "YES",
      };
    }),
  "information_schema.questdb_columns": (relations) =>
    forColumns(relations, (relation, column, index) => {
      const word = arrayDimensions(column.type) > 0 ? column.type : typeOf(column.type).name;
      return columnRow(relation, column.name, index, word);
    }),
};

/** The value of a column that a row omits: zero for numbers, false, or null. */
function emptyValue(tag: string): Value {
  const { order, timeUnit, layout, missing, fromBits } = typeOf(tag);
  const isNumber = (order === "signed" || order === "float") && timeUnit === undefined;
  return isNumber ? fromBits(layout === "i64" ? 0n : 0) : missing;
}

export function isCatalogSource(source: string): boolean {
  return /^(?:pg_catalog|information_schema)\./.test(source);
}

/** The rows of a source with these columns. */
export function catalogRows(
  source: string,
  columns: readonly { name: string; type: string }[],
  relations: () => readonly Relation[],
  asker: Asker,
): Value[][] {
  const rows = Object.hasOwn(SOURCES, source) ? SOURCES[source as keyof typeof SOURCES](relations, asker) : [];
  const [, table] = source.split(".");
  return rows.map((given) => {
    const row: Record<string, Value> = { tableoid: systemClassOid(table!) ?? 0, ...given };
    return columns.map(({ name, type }) => Object.hasOwn(row, name) ? row[name]! : emptyValue(type));
  });
}
