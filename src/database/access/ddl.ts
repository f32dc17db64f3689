/** The statements that re-create users, groups, service accounts and grants, without passwords and tokens. */
import type { Identity } from "../../api.ts";
import { type Grant, hasLevel, type Principal, type PrincipalKind } from "../../access/mod.ts";
import { type AccessCategory, accessIsOff, quotedName, quotedText } from "../../sql/mod.ts";
import type { AccessControl } from "./control.ts";

interface Asked {
  categories: readonly AccessCategory[];
  /** If false, those that the user may not see are omitted. */
  required: boolean;
  at: number;
}

/**
 * @throws {SqlError} 42501, or 55000 without access control, for required categories.
 */
export function accessTextsFor(
  access: AccessControl | undefined,
  identity: Identity,
  { categories, required, at }: Asked,
): string[] {
  if (access === undefined) {
    if (required && categories.length > 0) throw accessIsOff(at);
    return [];
  }
  const rights = access.rightsOf(identity);
  const seen = categories.filter((category) => {
    const needs = category === "PERMISSIONS" ? ["LIST USERS", "USER DETAILS"] as const : ["LIST USERS"] as const;
    if (required) { for (const permission of needs) access.require(identity, permission); }
    return needs.every((permission) => rights.has(permission));
  });
  return seen.length === 0 ? [] : seen.flatMap((category) => TEXTS[category](access.snapshot.principals()));
}

const TEXTS: Record<AccessCategory, (principals: readonly Principal[]) => string[]> = {
  USERS: (principals) => created(principals, "user"),
  GROUPS: (principals) => [
    ...created(principals, "group"),
    ...principals.filter(({ groups }) => groups.length > 0)
      .map(({ name, groups }) => `ADD USER ${quotedText(name)} TO ${groups.map(quotedText).join(", ")};`),
  ],
  SERVICE_ACCOUNTS: (principals) => [
    ...created(principals, "service account"),
    ...principals.flatMap(({ name, assumes }) =>
      assumes.map(({ account, grantOption }) =>
        `GRANT ASSUME SERVICE ACCOUNT ${quotedText(account)} TO ${quotedText(name)}${
          grantOption ? " WITH GRANT OPTION" : ""
        };`
      )
    ),
  ],
  PERMISSIONS: (principals) => principals.flatMap(grantTexts),
};

function created(principals: readonly Principal[], kind: PrincipalKind): string[] {
  return principals.filter((principal) => principal.kind === kind).flatMap(({ name, isEnabled, externalAlias }) => {
    const object = `${kind.toUpperCase()} ${quotedText(name)}`;
    const alias = externalAlias === undefined ? "" : ` WITH EXTERNAL ALIAS ${quotedText(externalAlias)}`;
    return [`CREATE ${object}${alias};`, ...isEnabled ? [] : [`ALTER ${object} DISABLE;`]];
  });
}

/** A statement for the permissions on each table, and one for the permissions on the same columns of a table. */
function grantTexts({ name, grants }: Principal): string[] {
  const byTarget = Map.groupBy(grants, (grant) => JSON.stringify([targetText(grant), grant.grantOption]));
  return [...byTarget.values()].map((same) => {
    const permissions = same.map(({ permission }) => permission).join(", ");
    const first = same[0]!, option = first.grantOption ? " WITH GRANT OPTION" : "";
    return `GRANT ${permissions}${targetText(first)} TO ${quotedText(name)}${option};`;
  });
}

function targetText({ permission, table, column }: Grant): string {
  if (table === undefined) return hasLevel(permission, "table") ? " ON ALL TABLES" : "";
  return ` ON ${quotedText(table)}${column === undefined ? "" : `(${quotedName(column)})`}`;
}
