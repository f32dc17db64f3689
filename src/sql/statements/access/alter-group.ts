import { at, token } from "../../tree-nodes.ts";
import { accessKind, type AccessStatement } from "./access-kind.ts";

export const alterGroup = accessKind({
  kind: "alterGroup",
  form: {
    words: ["ALTER"],
    grammar: String.raw`
  alterGroup = "ALTER" "GROUP" principal "WITH" "EXTERNAL" "ALIAS" "<string>"  -- set
             | "ALTER" "GROUP" principal "DROP" "EXTERNAL" "ALIAS" "<string>"  -- drop`,
    actions: {
      alterGroup_set(alter, _group, group, _with, _external, _alias, alias): AccessStatement {
        return {
          kind: "alterGroup",
          at: at(alter),
          command: { kind: "alias", group: group.tree(), alias: token(alias).text },
        };
      },
      alterGroup_drop(alter, _group, group, _drop, _external, _alias, alias): AccessStatement {
        return {
          kind: "alterGroup",
          at: at(alter),
          command: { kind: "dropAlias", group: group.tree(), alias: token(alias).text },
        };
      },
    },
  },
  reference: {
    syntax: `ALTER GROUP name WITH EXTERNAL ALIAS 'alias'
ALTER GROUP name DROP EXTERNAL ALIAS 'alias'`,
    summary: "Maps a group of the identity provider to the group. The result is the alias that was replaced, if any.",
  },
  requires: ["ADD EXTERNAL ALIAS", "REMOVE EXTERNAL ALIAS"],
  tag: "ALTER GROUP",
  columns: ({ kind }) =>
    kind === "alias" ? [{ name: "external_alias", type: "STRING" }, { name: "replaced", type: "STRING" }] : undefined,
});
