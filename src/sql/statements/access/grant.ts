import { at, given } from "../../tree-nodes.ts";
import { accessKind, type AccessStatement } from "./access-kind.ts";
import type { GrantClause } from "./access-parts.ts";

export const grant = accessKind({
  kind: "grant",
  form: {
    words: ["GRANT"],
    grammar: String.raw`
  grant = "GRANT" grants "TO" principal grantOption? verification?`,
    actions: {
      grant(grant, grants, _to, principal, option, verification): AccessStatement {
        return {
          kind: "grant",
          at: at(grant),
          command: {
            kind: "grant",
            ...grants.tree() as GrantClause,
            principal: principal.tree(),
            grantOption: given(option),
            isVerified: given(verification),
          },
        };
      },
    },
  },
  reference: {
    syntax: `GRANT permission, … TO name [WITH GRANT OPTION] [WITH VERIFICATION]
GRANT permission, … ON ALL TABLES TO name [WITH GRANT OPTION] [WITH VERIFICATION]
GRANT permission, … ON table [(column, … | * [EXCLUDE (column, …)])], … TO name [WITH GRANT OPTION] [WITH VERIFICATION]`,
    summary:
      "Gives permissions to a user, a group or a service account. Only WITH VERIFICATION requires that the name and the " +
      "tables exist.",
  },
  requires: [],
  tag: "GRANT",
});
