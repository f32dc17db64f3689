/** Rules of the grammar that statements of access control share. */
import type { GrantOn, Named, PrincipalKind } from "../../../access/mod.ts";
import { at, list, name, type Node, optional, token, written } from "../../tree-nodes.ts";
import { onlyName } from "../names.ts";
import type { Form } from "../statement.ts";

const named = (node: Node): Named => {
  const { text, at } = name(node);
  return { text, at };
};

export interface GrantClause {
  permissions: Named[];
  on?: "all tables" | GrantOn[];
}

export const accessParts: Pick<Form, "grammar" | "actions"> = {
  grammar: String.raw`
  principal = name | "<string>"
  principals = principal ("," principal)*
  principalKind = "USER"                                 -- user
                | "GROUP"                                -- group
                | "SERVICE" "ACCOUNT"                    -- account
  ownedBy = "OWNED" "BY" principal
  password = name | "<string>" | anyNumber
  grants = permissions grantOn?
  permissions = permission ("," permission)*
  permission = permissionWord+
  permissionWord = ~("ON" | "TO" | "FROM" | "," | "WITH") any
  grantOn = "ON" "ALL" "TABLES"                          -- all
          | "ON" grantTarget ("," grantTarget)*          -- tables
  grantTarget = tableName grantColumns?
  grantColumns = "(" "*" grantExclude? ")"               -- star
               | "(" columnName ("," columnName)* ")"    -- list
  grantExclude = "EXCLUDE" "(" columnName ("," columnName)* ")"
  grantOption = "WITH" "GRANT" "OPTION"
  verification = "WITH" "VERIFICATION"`,
  actions: {
    principal: named,
    principals: (first, _commas, rest) => [first, ...rest.children].map(named),
    principalKind_user: (_user): PrincipalKind => "user",
    principalKind_group: (_group): PrincipalKind => "group",
    principalKind_account: (_service, _account): PrincipalKind => "service account",
    ownedBy: (_owned, _by, owner): Named => owner.tree(),
    password(node): Named {
      const { text, at } = token(node);
      return { text, at };
    },
    grants(permissions, on): GrantClause {
      return { permissions: permissions.tree(), on: optional(on) };
    },
    permissions: (first, _commas, rest) => list<Named>(first, rest),
    permission(words): Named {
      return { text: written(words).replace(/\s+/g, " ").toUpperCase(), at: at(words) };
    },
    grantOn_all: (_on, _all, _tables) => "all tables",
    grantOn_tables: (_on, first, _commas, rest) => list<GrantOn>(first, rest),
    grantTarget(table, columns): GrantOn {
      const { text, at } = onlyName(table.tree());
      return { table: { text, at }, columns: optional(columns) };
    },
    grantColumns_star: (_open, _star, exclude, _close) => ({ star: true, names: optional(exclude) ?? [] }),
    grantColumns_list: (_open, first, _commas, rest, _close) => ({
      star: false,
      names: [first, ...rest.children].map(named),
    }),
    grantExclude: (_exclude, _open, first, _commas, rest, _close) => [first, ...rest.children].map(named),
  },
};
