import type { Named, PrincipalKind } from "../../../access/mod.ts";
import { SqlError } from "../../../errors.ts";
import { at, given, newName, token } from "../../tree-nodes.ts";
import { accessKind, type AccessStatement } from "./access-kind.ts";

interface Options {
  password?: Named;
  externalAlias?: { text: string; at: number };
  ownedBy?: Named;
}

export const createPrincipal = accessKind({
  kind: "createPrincipal",
  form: {
    words: ["CREATE"],
    grammar: String.raw`
  createPrincipal = "CREATE" principalKind ifNotExists? principal principalOption*
  principalOption = "WITH" "PASSWORD" password           -- password
                  | "WITH" "NO" "PASSWORD"               -- none
                  | "WITH" "EXTERNAL" "ALIAS" "<string>" -- alias
                  | ownedBy                              -- owner`,
    actions: {
      createPrincipal(create, kind, ifNotExists, principal, options): AccessStatement {
        const of: PrincipalKind = kind.tree();
        const { externalAlias, password, ownedBy }: Options = Object.assign(
          {},
          ...options.children.map((option) => option.tree()),
        );
        const name = principal.tree() as Named;
        newName({ ...name, quoted: token(principal).kind !== "word" });
        if (of === "group" && password !== undefined) throw new SqlError("a group cannot have a password", password.at);
        if (of !== "group" && externalAlias !== undefined) {
          throw new SqlError("only a group can have an external alias", externalAlias.at);
        }
        if (of !== "service account" && ownedBy !== undefined) {
          throw new SqlError("OWNED BY is only for service accounts", ownedBy.at);
        }
        return {
          kind: "createPrincipal",
          at: at(create),
          command: {
            kind: "create",
            of,
            name,
            ifNotExists: given(ifNotExists),
            password,
            externalAlias: externalAlias?.text,
            ownedBy,
          },
        };
      },
      principalOption_password: (_with, _password, password): Options => ({ password: password.tree() }),
      principalOption_none: (_with, _no, _password): Options => ({}),
      principalOption_alias: (_with, _external, _alias, alias): Options => ({ externalAlias: token(alias) }),
      principalOption_owner: (owner): Options => ({ ownedBy: owner.tree() }),
    },
  },
  reference: {
    syntax: `CREATE USER [IF NOT EXISTS] name [WITH PASSWORD password | WITH NO PASSWORD]
CREATE GROUP [IF NOT EXISTS] name [WITH EXTERNAL ALIAS 'alias']
CREATE SERVICE ACCOUNT [IF NOT EXISTS] name [WITH PASSWORD password | WITH NO PASSWORD] [OWNED BY name]`,
    summary:
      "Creates a user, a group or a service account. It has no permissions, and without a password it cannot sign in.",
  },
  requires: ["CREATE USER", "CREATE GROUP", "CREATE SERVICE ACCOUNT", "ADD EXTERNAL ALIAS"],
  tag: "CREATE of users, groups and service accounts",
  tagOf: (command) => "of" in command ? `CREATE ${command.of.toUpperCase()}` : "CREATE",
});
