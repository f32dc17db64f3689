/** The kinds of statements. To add one, write its file and list it here. */
import type { Prepared } from "../../api.ts";
import type { PostedPlan } from "../../engine/contract.ts";
import type { Statement } from "../ast.ts";
import type { BoundStatement } from "../plan.ts";
import { ACCESS_STATEMENTS, accessParts } from "./access/mod.ts";
import { addColumns } from "./alter-add-column.ts";
import { dropColumns } from "./alter-drop-column.ts";
import { alterOptions } from "./alter-options.ts";
import { alterPartitions } from "./alter-partitions.ts";
import { alterColumn } from "./alter-column.ts";
import { alterColumnType } from "./alter-column-type.ts";
import { alterMaterializedView } from "./alter-materialized-view.ts";
import { renameColumn } from "./alter-rename-column.ts";
import { setParquet } from "./alter-column-parquet.ts";
import { convertPartitions } from "./alter-convert-partitions.ts";
import { unsupportedAlteration } from "./alter-unsupported.ts";
import { backup } from "./backup.ts";
import { cancelQuery } from "./cancel-query.ts";
import { checkpoint } from "./checkpoint.ts";
import { close } from "./close.ts";
import { columnParts } from "./columns.ts";
import { copy } from "./copy.ts";
import { compileView } from "./compile-view.ts";
import { createMaterializedView } from "./create-materialized-view.ts";
import { createTable } from "./create-table.ts";
import { createView } from "./create-view.ts";
import { deallocate } from "./deallocate.ts";
import { deleteRows } from "./delete.ts";
import { discard } from "./discard.ts";
import { dropMaterializedView } from "./drop-materialized-view.ts";
import { dropTable } from "./drop-table.ts";
import { dropView } from "./drop-view.ts";
import { empty } from "./empty.ts";
import { explain } from "./explain.ts";
import { indexParts } from "./index-option.ts";
import { insert } from "./insert.ts";
import { parquetParts } from "./parquet-option.ts";
import { parts } from "./parts.ts";
import { query, QUERY_RULE } from "./query.ts";
import { refreshMaterializedView } from "./refresh-materialized-view.ts";
import { refreshParts } from "./refresh-rule.ts";
import { releaseSavepoint } from "./release-savepoint.ts";
import { renameTable } from "./rename-table.ts";
import { reset } from "./reset.ts";
import { rollbackTo } from "./rollback-to.ts";
import { savepoint } from "./savepoint.ts";
import { set } from "./set.ts";
import { showColumns } from "./show-columns.ts";
import { showCreateDatabase } from "./show-create-database.ts";
import { showCreateMaterializedView } from "./show-create-materialized-view.ts";
import { showCreateTable } from "./show-create-table.ts";
import { showCreateView } from "./show-create-view.ts";
import { showParameters } from "./show-parameters.ts";
import { showPartitions } from "./show-partitions.ts";
import { showSetting } from "./show-setting.ts";
import { showTables } from "./show-tables.ts";
import type { Form, Reader, StatementKind, StatementSource } from "./statement.ts";
import { transaction } from "./transaction.ts";
import { reindex } from "./reindex.ts";
import { truncate } from "./truncate.ts";
import { unlisten } from "./unlisten.ts";
import { update } from "./update.ts";
import { vacuum } from "./vacuum.ts";

/** Several kinds may begin with the same words. The first one that reads a statement is used. */
export const STATEMENTS: readonly StatementKind[] = [
  query,
  insert,
  update,
  deleteRows,
  createTable,
  createView,
  createMaterializedView,
  addColumns,
  dropColumns,
  renameColumn,
  alterColumn,
  alterColumnType,
  setParquet,
  alterPartitions,
  convertPartitions,
  alterOptions,
  alterMaterializedView,
  unsupportedAlteration,
  renameTable,
  truncate,
  vacuum,
  reindex,
  dropTable,
  dropView,
  dropMaterializedView,
  refreshMaterializedView,
  compileView,
  ...ACCESS_STATEMENTS,
  showTables,
  showColumns,
  showPartitions,
  showCreateTable,
  showCreateView,
  showCreateMaterializedView,
  showCreateDatabase,
  showParameters,
  showSetting,
  explain,
  rollbackTo,
  transaction,
  savepoint,
  releaseSavepoint,
  cancelQuery,
  checkpoint,
  backup,
  copy,
  set,
  reset,
  discard,
  deallocate,
  close,
  unlisten,
  empty,
];

const BY_KIND = new Map(STATEMENTS.map((statement) => [statement.kind, statement]));

export function kindOf(statement: Statement | BoundStatement<unknown>): StatementKind {
  const kind = BY_KIND.get(statement.kind);
  if (kind === undefined) throw new Error(`unknown kind of statement: ${statement.kind}`);
  return kind;
}

/** Returns the rows of a statement whose plan names this source. */
export function statementSource(name: string): StatementSource | undefined {
  return BY_KIND.get(name)?.source;
}

export function categoryOf(bound: BoundStatement<PostedPlan>): Prepared["category"] {
  const kind = kindOf(bound);
  return kind.categoryOf?.(bound, categoryOf) ?? kind.category;
}

/**
 * Kinds that begin with the same words. In the grammar, rule `form` matches any of them, and rule `statement` matches
 * it up to the end.
 */
interface Group {
  readonly words: string;
  readonly form: string;
  readonly statement: string;
  readonly kinds: readonly StatementKind[];
  /** If none of the kinds matches, the statement is a query of a table by this name. */
  readonly mayBeTable: boolean;
}

const GROUPS: readonly Group[] = grouped();

function grouped(): Group[] {
  const byWords = Map.groupBy(
    STATEMENTS.flatMap((kind) => (kind.form.words ?? []).map((words) => ({ kind, words }))),
    ({ words }) => words,
  );
  return [...byWords].map(([words, entries]) => {
    // CANCEL QUERY → cancelQuery
    const name = words.toLowerCase().replace(/ (\w)/g, (_, letter: string) => letter.toUpperCase());
    const kinds = entries.map(({ kind }) => kind), mayBeTable = kinds.every(({ form }) => form.mayBeTable);
    return { words, form: `${name}Form`, statement: `${name}Statement`, kinds, mayBeTable };
  });
}

/** Rules of the grammar that read a whole statement, by its first words. */
export const STATEMENT_RULES: Readonly<Record<string, string>> = Object.assign(
  {},
  ...STATEMENTS.map(({ form }) => form.statements),
  Object.fromEntries(GROUPS.map(({ words, statement }) => [words, statement])),
);

export const READERS: readonly Reader[] = STATEMENTS.flatMap(({ form }) => form.reader ?? []);

const FORMS: readonly Pick<Form, "grammar" | "actions">[] = [
  ...STATEMENTS.map(({ form }) => form),
  columnParts,
  indexParts,
  parquetParts,
  accessParts,
  refreshParts,
  parts,
];

/** The rules of all statements. */
export const STATEMENT_GRAMMAR = [
  ...FORMS.flatMap(({ grammar }) => grammar ?? []),
  `\n  afterWith = ${STATEMENTS.filter(({ form }) => form.followsWith).map(({ kind }) => kind).join(" | ")}`,
  ...GROUPS.map(({ form, statement, kinds, mayBeTable }) => {
    const forms = `\n  ${form} = ${kinds.map(({ kind }) => kind).join(" | ")}`;
    return mayBeTable
      ? `${forms}\n  ${statement} = ${form} end -- form\n    | ${QUERY_RULE} -- query`
      : `${forms}\n  ${statement} = ${form} end`;
  }),
].join("\n");

export const STATEMENT_ACTIONS: NonNullable<Form["actions"]> = Object.assign(
  Object.fromEntries(
    GROUPS.map(({ statement, mayBeTable }) => [
      mayBeTable ? `${statement}_form` : statement,
      (form: { tree(): unknown }, _end: unknown) => form.tree(),
    ]),
  ),
  ...FORMS.map(({ actions }) => actions),
);
