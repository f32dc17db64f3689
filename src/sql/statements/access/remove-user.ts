import { at } from "../../tree-nodes.ts";
import { accessKind, type AccessStatement } from "./access-kind.ts";

export const removeUser = accessKind({
  kind: "removeUser",
  form: {
    words: ["REMOVE USER"],
    grammar: String.raw`
  removeUser = "REMOVE" "USER" principal "FROM" principals`,
    actions: {
      removeUser(remove, _user, user, _from, groups): AccessStatement {
        return {
          kind: "removeUser",
          at: at(remove),
          command: { kind: "removeUser", user: user.tree(), groups: groups.tree() },
        };
      },
    },
  },
  reference: { syntax: "REMOVE USER name FROM group, …", summary: "Removes a user from groups." },
  requires: ["REMOVE USER"],
  tag: "REMOVE USER",
});
