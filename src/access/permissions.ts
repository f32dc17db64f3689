/**
 * Every permission, declared once: its name and the levels on which it can be granted. GRANT, `all_permissions()`, the
 * reference page and the checks read this list.
 */
export type Level = "database" | "table" | "column";

const D = ["database"] as const;
const DT = ["database", "table"] as const;
const DTC = ["database", "table", "column"] as const;

/** Each permission with a description of what it allows. */
const CATALOGUE = {
  // Endpoints: without one a principal cannot connect.
  "HTTP": [D, "Connecting over HTTP: the REST API, the console, line protocol over HTTP"],
  "PGWIRE": [D, "Connecting over the PostgreSQL wire"],
  "ILP": [D, "Connecting over the TCP line protocol"],
  // Data and tables.
  "SELECT": [DTC, "Reading"],
  "INSERT": [DT, "Adding rows: INSERT, line protocol, imports"],
  "UPDATE": [DTC, "UPDATE of the columns set"],
  "CREATE TABLE": [D, "CREATE TABLE, and tables that line protocol makes"],
  "CREATE MATERIALIZED VIEW": [D, "CREATE MATERIALIZED VIEW"],
  "CREATE LIVE VIEW": [D, "CREATE LIVE VIEW"],
  "CREATE VIEW": [D, "CREATE VIEW"],
  "ALTER VIEW": [DT, "ALTER VIEW"],
  "COMPILE VIEW": [DT, "COMPILE VIEW"],
  "DROP VIEW": [DT, "DROP VIEW"],
  "ALTER MATERIALIZED VIEW": [DT, "ALTER MATERIALIZED VIEW"],
  "REFRESH MATERIALIZED VIEW": [DT, "REFRESH MATERIALIZED VIEW"],
  "DROP MATERIALIZED VIEW": [DT, "DROP MATERIALIZED VIEW"],
  "DROP LIVE VIEW": [DT, "DROP LIVE VIEW"],
  "DROP TABLE": [DT, "DROP TABLE"],
  "TRUNCATE TABLE": [DT, "TRUNCATE TABLE, and DELETE"],
  "RENAME TABLE": [DT, "RENAME TABLE"],
  "VACUUM TABLE": [DT, "VACUUM TABLE"],
  "ADD COLUMN": [DT, "ALTER TABLE ADD COLUMN, and columns that line protocol adds"],
  "DROP COLUMN": [DTC, "ALTER TABLE DROP COLUMN"],
  "RENAME COLUMN": [DTC, "ALTER TABLE RENAME COLUMN"],
  "ALTER COLUMN TYPE": [DTC, "ALTER COLUMN TYPE"],
  "ALTER COLUMN CACHE": [DTC, "ALTER COLUMN CACHE and NOCACHE"],
  "ADD INDEX": [DTC, "ALTER COLUMN ADD INDEX"],
  "DROP INDEX": [DTC, "ALTER COLUMN DROP INDEX"],
  "REINDEX": [DTC, "REINDEX TABLE"],
  "ATTACH PARTITION": [DT, "ATTACH PARTITION"],
  "DETACH PARTITION": [DT, "DETACH PARTITION"],
  "DROP PARTITION": [DT, "DROP PARTITION"],
  "DEDUP ENABLE": [DT, "DEDUP ENABLE"],
  "DEDUP DISABLE": [DT, "DEDUP DISABLE"],
  "SET TABLE PARAM": [DT, "SET PARAM"],
  "SET TABLE TYPE": [DT, "SET TYPE"],
  "RESUME WAL": [DT, "RESUME WAL"],
  "SET STORAGE POLICY": [DT, "SET STORAGE POLICY"],
  "REMOVE STORAGE POLICY": [DT, "Removing a storage policy"],
  "ENABLE STORAGE POLICY": [DT, "Enabling a storage policy"],
  "DISABLE STORAGE POLICY": [DT, "Disabling a storage policy"],
  // The server.
  "BACKUP DATABASE": [D, "BACKUP"],
  "SNAPSHOT": [D, "SNAPSHOT and CHECKPOINT"],
  "CANCEL ANY COPY": [D, "COPY 'id' CANCEL of another's copy"],
  "SQL ENGINE ADMIN": [D, "Listing and cancelling running queries of others"],
  "SYSTEM ADMIN": [D, "System functions such as reload_config(), and SHOW PARAMETERS"],
  "SETTINGS": [D, "Changing the instance settings of the console"],
  // Principals.
  "ADD EXTERNAL ALIAS": [D, "Mapping an external group to a group"],
  "REMOVE EXTERNAL ALIAS": [D, "Removing the mapping of an external group"],
  "ADD PASSWORD": [D, "Setting a password"],
  "REMOVE PASSWORD": [D, "Removing a password"],
  "CREATE USER": [D, "CREATE USER"],
  "DROP USER": [D, "DROP USER"],
  "ENABLE USER": [D, "ALTER USER or SERVICE ACCOUNT ENABLE"],
  "DISABLE USER": [D, "ALTER USER or SERVICE ACCOUNT DISABLE"],
  "CREATE GROUP": [D, "CREATE GROUP"],
  "DROP GROUP": [D, "DROP GROUP"],
  "ADD USER": [D, "ADD USER to groups"],
  "REMOVE USER": [D, "REMOVE USER from groups"],
  "CREATE SERVICE ACCOUNT": [D, "CREATE SERVICE ACCOUNT"],
  "DROP SERVICE ACCOUNT": [D, "DROP SERVICE ACCOUNT"],
  "CREATE JWK": [D, "Creating a JWK token"],
  "DROP JWK": [D, "Dropping a JWK token"],
  "CREATE REST TOKEN": [D, "Creating a REST token"],
  "DROP REST TOKEN": [D, "Dropping a REST token"],
  "LIST USERS": [D, "Listing users, groups and service accounts"],
  "USER DETAILS": [D, "Details of other users: SHOW USER, GROUPS, PERMISSIONS"],
  // All permissions, including later ones; service accounts can be assumed without a grant.
  "DATABASE ADMIN": [D, "Every permission, including future ones"],
} as const satisfies Record<string, readonly [levels: readonly Level[], summary: string]>;

export type Permission = keyof typeof CATALOGUE;

export interface PermissionEntry {
  readonly name: Permission;
  readonly levels: readonly Level[];
  readonly summary: string;
}

export const PERMISSIONS: readonly PermissionEntry[] = Object.entries(CATALOGUE).map(([name, [levels, summary]]) => ({
  name: name as Permission,
  levels,
  summary,
}));

const BY_NAME = new Map(PERMISSIONS.map((entry) => [entry.name as string, entry]));

/** Undefined for an unknown name. Names are in upper case with single blanks. */
export function permissionOf(name: string): PermissionEntry | undefined {
  return BY_NAME.get(name);
}

export function hasLevel(permission: Permission, level: Level): boolean {
  return (CATALOGUE[permission][0] as readonly Level[]).includes(level);
}

/**
 * The meaning of `ALL` on a level: every permission that can be granted there except DATABASE ADMIN, which includes
 * more.
 */
export function allOf(level: Level): Permission[] {
  return PERMISSIONS.filter(({ name, levels }) => levels.includes(level) && name !== "DATABASE ADMIN")
    .map(({ name }) => name);
}

/** The permission for each endpoint. */
export const ENDPOINTS = { http: "HTTP", pg: "PGWIRE", line: "ILP" } as const satisfies Record<string, Permission>;
