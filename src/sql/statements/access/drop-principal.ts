import { at, given } from "../../tree-nodes.ts";
import { accessKind, type AccessStatement } from "./access-kind.ts";

export const dropPrincipal = accessKind({
  kind: "dropPrincipal",
  form: {
    words: ["DROP"],
    grammar: String.raw`
  dropPrincipal = "DROP" principalKind ifExists? principal`,
    actions: {
      dropPrincipal(drop, kind, ifExists, principal): AccessStatement {
        return {
          kind: "dropPrincipal",
          at: at(drop),
          command: { kind: "drop", of: kind.tree(), name: principal.tree(), ifExists: given(ifExists) },
        };
      },
    },
  },
  reference: {
    syntax: "DROP USER | GROUP | SERVICE ACCOUNT [IF EXISTS] name",
    summary: "Removes a user, a group or a service account, with its secrets and permissions.",
  },
  requires: ["DROP USER", "DROP GROUP", "DROP SERVICE ACCOUNT"],
  tag: "DROP of users, groups and service accounts",
  tagOf: (command) => "of" in command ? `DROP ${command.of.toUpperCase()}` : "DROP",
});
