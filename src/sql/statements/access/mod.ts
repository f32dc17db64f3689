/** The statements of access control. */
import type { StatementKind } from "../statement.ts";
import { addUser } from "./add-user.ts";
import { alterGroup } from "./alter-group.ts";
import { alterPrincipal } from "./alter-principal.ts";
import { assume, exitAccount } from "./assume.ts";
import { createPrincipal } from "./create-principal.ts";
import { dropPrincipal } from "./drop-principal.ts";
import { grantAssume } from "./grant-assume.ts";
import { grant } from "./grant.ts";
import { removeUser } from "./remove-user.ts";
import { revokeAssume } from "./revoke-assume.ts";
import { revoke } from "./revoke.ts";
import {
  showGroups,
  showPermissions,
  showServiceAccount,
  showServiceAccounts,
  showUser,
  showUsers,
} from "./show-access.ts";

export { accessParts } from "./access-parts.ts";

export const ACCESS_STATEMENTS: readonly StatementKind[] = [
  createPrincipal,
  alterPrincipal,
  alterGroup,
  dropPrincipal,
  addUser,
  removeUser,
  grantAssume,
  grant,
  revokeAssume,
  revoke,
  assume,
  exitAccount,
  showUsers,
  showUser,
  showGroups,
  showServiceAccounts,
  showServiceAccount,
  showPermissions,
];
