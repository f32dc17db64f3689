import { at } from "../../tree-nodes.ts";
import { accessKind, type AccessStatement } from "./access-kind.ts";

export const revokeAssume = accessKind({
  kind: "revokeAssume",
  form: {
    words: ["REVOKE"],
    grammar: String.raw`
  revokeAssume = "REVOKE" "ASSUME" "SERVICE" "ACCOUNT" principal "FROM" principal`,
    actions: {
      revokeAssume(revoke, _assume, _service, _accountWord, account, _from, principal): AccessStatement {
        return {
          kind: "revokeAssume",
          at: at(revoke),
          command: { kind: "revokeAssume", account: account.tree(), principal: principal.tree() },
        };
      },
    },
  },
  reference: {
    syntax: "REVOKE ASSUME SERVICE ACCOUNT account FROM name",
    summary: "Revokes the permission that GRANT ASSUME gave.",
  },
  requires: [],
  tag: "REVOKE",
});
