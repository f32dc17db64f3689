import type { Named } from "../../../access/mod.ts";
import type { StatementRun } from "../statement.ts";
import { accessIsOff } from "./access-kind.ts";

/**
 * The principal that gets all rights on what a statement makes, by OWNED BY. Undefined without it: the user's.
 * @throws {SqlError} if there is none of that name
 */
export function ownerOf(ownedBy: Named | undefined, { services }: StatementRun): string | undefined {
  if (ownedBy === undefined) return undefined;
  if (services.accessStatements === undefined) throw accessIsOff(ownedBy.at);
  return services.accessStatements.ownerNamed(ownedBy);
}
