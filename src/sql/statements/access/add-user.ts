import { at } from "../../tree-nodes.ts";
import { accessKind, type AccessStatement } from "./access-kind.ts";

export const addUser = accessKind({
  kind: "addUser",
  form: {
    words: ["ADD USER"],
    grammar: String.raw`
  addUser = "ADD" "USER" principal "TO" principals`,
    actions: {
      addUser(add, _user, user, _to, groups): AccessStatement {
        return { kind: "addUser", at: at(add), command: { kind: "addUser", user: user.tree(), groups: groups.tree() } };
      },
    },
  },
  reference: { syntax: "ADD USER name TO group, …", summary: "Makes a user a member of groups." },
  requires: ["ADD USER"],
  tag: "ADD USER",
});
