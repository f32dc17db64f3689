/**
 * SHOW of users, groups, service accounts and permissions. Rows that the user may not see are left out when the rows
 * are made.
 */
import type { Named } from "../../../access/mod.ts";
import type { Statement } from "../../ast.ts";
import { metadataPlan } from "../../binder/metadata.ts";
import { at, optional } from "../../tree-nodes.ts";
import type { Reference } from "../statement.ts";
import { showKind } from "../show.ts";

interface ShowAccess extends Statement {
  of?: Named;
}

/** `words`: the grammar's rule after SHOW. */
function showAccess(kind: string, words: string, source: (of: Named | undefined) => string, reference: Reference) {
  const rule = `${kind}_any`;
  return showKind<ShowAccess>({
    kind,
    form: {
      words: ["SHOW"],
      grammar: `\n  ${kind} = "SHOW" ${kind}Words principal?  -- any\n  ${kind}Words = ${words}`,
      actions: {
        [rule]: (show, _words, principal) => ({ kind, at: at(show), of: optional(principal) }),
      },
    },
    reference,
    requires: ["LIST USERS", "USER DETAILS"],
    plan: ({ of, at }) => metadataPlan(source(of), of === undefined ? [] : [of.text], of?.at ?? at),
  });
}

export const showUsers = showAccess("showUsers", '"USERS"', () => "show_users", {
  syntax: "SHOW USERS",
  summary: "The names of all users.",
});

export const showUser = showAccess("showUser", '"USER"', () => "show_user", {
  syntax: "SHOW USER [name]",
  summary: "How a user can sign in.",
});

export const showGroups = showAccess("showGroups", '"GROUPS"', () => "show_groups", {
  syntax: "SHOW GROUPS [user]",
  summary: "The names of all groups, or of those that a user is in.",
});

export const showServiceAccounts = showAccess(
  "showServiceAccounts",
  '"SERVICE" "ACCOUNTS"',
  (of) => of === undefined ? "show_service_accounts" : "show_service_accounts_of",
  {
    syntax: "SHOW SERVICE ACCOUNTS [user | group]",
    summary: "The names of all service accounts, or of those that a user or a group may assume.",
  },
);

export const showServiceAccount = showAccess(
  "showServiceAccount",
  '"SERVICE" "ACCOUNT"',
  () => "show_service_account",
  { syntax: "SHOW SERVICE ACCOUNT [name]", summary: "How a service account can sign in." },
);

export const showPermissions = showAccess("showPermissions", '"PERMISSIONS"', () => "show_permissions", {
  syntax: "SHOW PERMISSIONS [name]",
  summary: "The permissions of a user including those of its groups, of a group, or of a service account.",
});
