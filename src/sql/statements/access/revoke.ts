import { at } from "../../tree-nodes.ts";
import { accessKind, type AccessStatement } from "./access-kind.ts";
import type { GrantClause } from "./access-parts.ts";

export const revoke = accessKind({
  kind: "revoke",
  form: {
    words: ["REVOKE"],
    grammar: String.raw`
  revoke = "REVOKE" grants "FROM" principal`,
    actions: {
      revoke(revoke, grants, _from, principal): AccessStatement {
        return {
          kind: "revoke",
          at: at(revoke),
          command: { kind: "revoke", ...grants.tree() as GrantClause, principal: principal.tree() },
        };
      },
    },
  },
  reference: {
    syntax: "REVOKE permission, … [ON ALL TABLES | ON table [(column, …)], …] FROM name",
    summary: "Revokes permissions. To revoke a permission that a user has through a group, revoke it from the group.",
  },
  requires: [],
  tag: "REVOKE",
});
