import type { Named } from "../../../access/mod.ts";
import type { StatementRun } from "../statement.ts";
import { accessIsOff } from "./access-kind.ts";

/**
 * Returns the principal of OWNED BY, which gets all permissions on what the statement creates. Undefined without OWNED
 * BY: the user gets them.
 * @throws {SqlError} if the principal does not exist
 */
export function ownerOf(ownedBy: Named | undefined, { services }: StatementRun): string | undefined {
  if (ownedBy === undefined) return undefined;
  if (services.accessStatements === undefined) throw accessIsOff(ownedBy.at);
  return services.accessStatements.ownerNamed(ownedBy);
}
