/** Commands of access control as plain data: names with their offsets in the statement, not looked up yet. */
import type { Permission } from "./permissions.ts";
import type { PrincipalKind } from "./principals.ts";

export interface Named {
  readonly text: string;
  readonly at: number;
}

interface OfPrincipal {
  readonly of: PrincipalKind;
  readonly name: Named;
}

/** Tables, or columns of one table. */
export interface GrantOn {
  readonly table: Named;
  /** `star`: all present columns except `names`. Otherwise the columns in `names`. */
  readonly columns?: { readonly star: boolean; readonly names: readonly Named[] };
}

export interface Granted {
  /** In upper case, including ALL. */
  readonly permissions: readonly Named[];
  /** Absent for permissions on the database. */
  readonly on?: "all tables" | readonly GrantOn[];
  /** The principal that gets or loses the permissions. */
  readonly principal: Named;
}

export type AccessCommand =
  | OfPrincipal & {
    kind: "create";
    ifNotExists: boolean;
    password?: Named;
    externalAlias?: string;
    /** For a service account: the principal that may assume it, in place of its creator. */
    ownedBy?: Named;
  }
  | OfPrincipal & { kind: "drop"; ifExists: boolean }
  | OfPrincipal & { kind: "enable" | "disable" | "dropPassword" }
  | OfPrincipal & { kind: "password"; password: Named }
  | OfPrincipal & { kind: "createToken"; ttlMs: number; refreshes: boolean }
  /** Without a token: removes all tokens. */
  | OfPrincipal & { kind: "dropToken"; token?: Named }
  | { kind: "alias"; group: Named; alias: string }
  | { kind: "dropAlias"; group: Named; alias: string }
  | { kind: "addUser" | "removeUser"; user: Named; groups: readonly Named[] }
  | Granted & { kind: "grant"; grantOption: boolean; isVerified: boolean }
  | Granted & { kind: "revoke" }
  | { kind: "grantAssume"; account: Named; principal: Named; grantOption: boolean }
  | { kind: "revokeAssume"; account: Named; principal: Named };

/**
 * The permissions that a command needs regardless of the user. For GRANT and REVOKE, the grant option is checked
 * instead.
 */
export function permissionsFor(command: AccessCommand): Permission[] {
  switch (command.kind) {
    case "create":
      return [
        CREATE[command.of],
        ...command.externalAlias === undefined ? [] : ["ADD EXTERNAL ALIAS" as const],
      ];
    case "drop":
      return [DROP[command.of]];
    case "enable":
      return ["ENABLE USER"];
    case "disable":
      return ["DISABLE USER"];
    case "password":
      return ["ADD PASSWORD"];
    case "dropPassword":
      return ["REMOVE PASSWORD"];
    case "createToken":
      return ["CREATE REST TOKEN"];
    case "dropToken":
      return ["DROP REST TOKEN"];
    case "alias":
      return ["ADD EXTERNAL ALIAS"];
    case "dropAlias":
      return ["REMOVE EXTERNAL ALIAS"];
    case "addUser":
      return ["ADD USER"];
    case "removeUser":
      return ["REMOVE USER"];
    default:
      return [];
  }
}

const CREATE = { user: "CREATE USER", group: "CREATE GROUP", "service account": "CREATE SERVICE ACCOUNT" } as const;
const DROP = { user: "DROP USER", group: "DROP GROUP", "service account": "DROP SERVICE ACCOUNT" } as const;

/** Describes the command for the audit, without secrets. */
export function described(command: AccessCommand): string {
  const quoted = ({ text }: Named) => `'${text}'`;
  switch (command.kind) {
    case "create": {
      const { of, name, password, externalAlias, ownedBy } = command;
      return [
        `CREATE ${of.toUpperCase()} ${quoted(name)}`,
        ...password === undefined ? [] : ["WITH PASSWORD"],
        ...externalAlias === undefined ? [] : [`WITH EXTERNAL ALIAS '${externalAlias}'`],
        ...ownedBy === undefined ? [] : [`OWNED BY ${quoted(ownedBy)}`],
      ].join(" ");
    }
    case "drop":
      return `DROP ${command.of.toUpperCase()} ${quoted(command.name)}`;
    case "enable":
    case "disable":
      return `ALTER ${command.of.toUpperCase()} ${quoted(command.name)} ${command.kind.toUpperCase()}`;
    case "password":
      return `ALTER ${command.of.toUpperCase()} ${quoted(command.name)} WITH PASSWORD`;
    case "dropPassword":
      return `ALTER ${command.of.toUpperCase()} ${quoted(command.name)} WITH NO PASSWORD`;
    case "createToken":
      return `ALTER ${command.of.toUpperCase()} ${quoted(command.name)} CREATE TOKEN TYPE REST`;
    case "dropToken":
      return `ALTER ${command.of.toUpperCase()} ${quoted(command.name)} DROP TOKEN TYPE REST${
        command.token === undefined ? ", all" : ""
      }`;
    case "alias":
      return `ALTER GROUP ${quoted(command.group)} WITH EXTERNAL ALIAS '${command.alias}'`;
    case "dropAlias":
      return `ALTER GROUP ${quoted(command.group)} DROP EXTERNAL ALIAS '${command.alias}'`;
    case "addUser":
      return `ADD USER ${quoted(command.user)} TO ${command.groups.map(quoted).join(", ")}`;
    case "removeUser":
      return `REMOVE USER ${quoted(command.user)} FROM ${command.groups.map(quoted).join(", ")}`;
    case "grant":
      return `GRANT ${grantText(command)} TO ${quoted(command.principal)}${
        command.grantOption ? " WITH GRANT OPTION" : ""
      }`;
    case "revoke":
      return `REVOKE ${grantText(command)} FROM ${quoted(command.principal)}`;
    case "grantAssume":
      return `GRANT ASSUME SERVICE ACCOUNT ${quoted(command.account)} TO ${quoted(command.principal)}${
        command.grantOption ? " WITH GRANT OPTION" : ""
      }`;
    case "revokeAssume":
      return `REVOKE ASSUME SERVICE ACCOUNT ${quoted(command.account)} FROM ${quoted(command.principal)}`;
  }
}

function grantText({ permissions, on }: Granted): string {
  const names = permissions.map(({ text }) => text).join(", ");
  if (on === undefined) return names;
  if (on === "all tables") return `${names} ON ALL TABLES`;
  const targets = on.map(({ table, columns }) => {
    if (columns === undefined) return `'${table.text}'`;
    const list = columns.names.map(({ text }) => `'${text}'`).join(", ");
    return `'${table.text}'(${columns.star ? `*${list === "" ? "" : ` EXCLUDE (${list})`}` : list})`;
  });
  return `${names} ON ${targets.join(", ")}`;
}
