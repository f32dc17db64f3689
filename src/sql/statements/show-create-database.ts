import { SqlError } from "../../errors.ts";
import type { Statement } from "../ast.ts";
import { columns } from "../binder/metadata.ts";
import { at, list, optional, token } from "../tree-nodes.ts";
import { createMaterializedText } from "./refresh-rule.ts";
import { createTableText } from "./show-create-table.ts";
import { showKind, sourcePlan } from "./show.ts";
import { createViewText } from "./show-create-view.ts";
import type { AccessCategory, SourceServices } from "./statement.ts";

const SCHEMA = ["TABLES", "VIEWS", "MATERIALIZED_VIEWS"] as const;
const ACL: readonly AccessCategory[] = ["USERS", "GROUPS", "SERVICE_ACCOUNTS", "PERMISSIONS"];
const ALL = [...SCHEMA, ...ACL];
const CATEGORIES: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(ALL.map((category) => [category, [category]])),
  SCHEMA,
  ACL,
};

interface Selection {
  isExclusion: boolean;
  categories: readonly string[];
}

interface ShowCreateDatabase extends Statement {
  selection?: Selection;
}

const COLUMNS = columns("ddl:VARCHAR");

export const showCreateDatabase = showKind<ShowCreateDatabase>({
  kind: "showCreateDatabase",
  form: {
    words: ["SHOW"],
    grammar: String.raw`
  showCreateDatabase = "SHOW" "CREATE" "DATABASE" ddlSelection?
  ddlSelection = ("INCLUDE" | "EXCLUDE") "ALL"                                     -- all
               | ("INCLUDE" | "EXCLUDE") "(" ddlCategory ("," ddlCategory)* ")"    -- list
  ddlCategory = ~("(" | ")" | ",") any`,
    actions: {
      showCreateDatabase: (show, _create, _database, selection) => ({
        kind: "showCreateDatabase",
        at: at(show),
        selection: optional<Selection>(selection),
      }),
      ddlSelection_all: (how, _all): Selection => ({ isExclusion: isExclusion(token(how)), categories: ALL }),
      ddlSelection_list: (how, _open, first, _commas, rest, _close): Selection => ({
        isExclusion: isExclusion(token(how)),
        categories: list<readonly string[]>(first, rest).flat(),
      }),
      ddlCategory(node): readonly string[] {
        const { text, at } = token(node), name = text.toUpperCase();
        if (Object.hasOwn(CATEGORIES, name)) return CATEGORIES[name]!;
        throw new SqlError(`unknown category ${text}: expected ${Object.keys(CATEGORIES).join(", ")}`, at);
      },
    },
  },
  reference: {
    syntax: "SHOW CREATE DATABASE [INCLUDE | EXCLUDE ALL | (category, …)]",
    summary:
      "The statements that create all tables, users, groups, service accounts and grants, one in each row. Run on an empty " +
      "database, they create the same objects, but without passwords and tokens. Categories are TABLES, VIEWS and " +
      "MATERIALIZED_VIEWS (together SCHEMA), USERS, GROUPS, SERVICE_ACCOUNTS and PERMISSIONS (together ACL). Those of ACL " +
      "are omitted if the user may not see them, unless INCLUDE names them.",
  },
  requires: ["LIST USERS", "USER DETAILS"],
  source: {
    rows(services, { args: [isNamed, ...categories], at }) {
      const schema = SCHEMA.flatMap((category) =>
        categories.includes(category) ? SCHEMA_TEXTS[category](services) : []
      );
      const shown = ACL.filter((category) => categories.includes(category));
      return [...schema, ...services.accessTexts(shown, isNamed === true, at)].map((text) => [text]);
    },
  },
  plan({ selection, at }) {
    const { isExclusion, categories } = selection ?? { isExclusion: true, categories: [] };
    const shown = ALL.filter((category) => categories.includes(category) !== isExclusion);
    return sourcePlan("showCreateDatabase", COLUMNS, [!isExclusion, ...shown], at);
  },
});

const isExclusion = ({ text }: { text: string }) => text.toUpperCase() === "EXCLUDE";

const SCHEMA_TEXTS: Record<typeof SCHEMA[number], (services: SourceServices) => string[]> = {
  TABLES: ({ userTables }) =>
    userTables().filter(({ schema }) => schema.materialized === undefined)
      .toSorted((a, b) => a.schema.name < b.schema.name ? -1 : 1).map(createTableText),
  VIEWS: ({ views }) => views.all().map(createViewText),
  // In the order of their creation: one may read the one before.
  MATERIALIZED_VIEWS: ({ catalogue }) =>
    catalogue.tables().flatMap(({ schema }) =>
      schema.materialized === undefined ? [] : [createMaterializedText(schema, schema.materialized)]
    ),
};
