import { at, given } from "../../tree-nodes.ts";
import { accessKind, type AccessStatement } from "./access-kind.ts";

export const grantAssume = accessKind({
  kind: "grantAssume",
  form: {
    words: ["GRANT"],
    grammar: String.raw`
  grantAssume = "GRANT" "ASSUME" "SERVICE" "ACCOUNT" principal "TO" principal grantOption?`,
    actions: {
      grantAssume(grant, _assume, _service, _accountWord, account, _to, principal, option): AccessStatement {
        return {
          kind: "grantAssume",
          at: at(grant),
          command: {
            kind: "grantAssume",
            account: account.tree(),
            principal: principal.tree(),
            grantOption: given(option),
          },
        };
      },
    },
  },
  reference: {
    syntax: "GRANT ASSUME SERVICE ACCOUNT account TO name [WITH GRANT OPTION]",
    summary: "Lets a user, or the members of a group, assume the service account.",
  },
  requires: [],
  tag: "GRANT",
});
