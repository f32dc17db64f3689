/** The actions on a table and on a column. Changes must be confirmed, and the confirmation shows the statement. */
import type { MenuItem } from "../app/menu.tsx";
import { ask, type Field, type Question } from "../app/dialogs.tsx";
import { editor } from "../editor/editor.tsx";
import { copyText } from "../store/clipboard.ts";
import { query } from "../server/client.ts";
import { notify } from "../store/notices.ts";
import { uncover } from "../store/panels.ts";
import { columnsOf, language, literal, quoted, refreshSchema, type Table, type TableColumn } from "../store/schema.ts";
import { may, mayOn, maySomewhere } from "../sign-in/permissions.ts";
import { openTab } from "../store/tabs.ts";

/** A menu entry that is only offered to users who may use it. */
type Offer = MenuItem & { isAllowed?: boolean };

const allowed = (offers: readonly Offer[]): MenuItem[] => offers.filter(({ isAllowed }) => isAllowed !== false);

export function tableActions(shown: Table): MenuItem[] {
  const { name, timestamp, kind } = shown, table = quoted(name);
  if (kind === "view") return viewActions(name, timestamp);
  if (kind === "materialized view") return materializedActions(shown);
  return allowed([
    ...rowActions(shown),
    { name: "Add a column …", isAllowed: may("ADD COLUMN", name), run: () => addColumn(name) },
    { name: "Rename …", isAllowed: may("RENAME TABLE", name), run: () => rename(name) },
    {
      name: "Remove all rows …",
      isAllowed: may("TRUNCATE TABLE", name),
      run: () =>
        change(`truncate table ${table};`, {
          title: `Remove all rows of ${name}?`,
          confirm: "Remove all rows",
          isDangerous: true,
        }),
    },
    {
      name: "Drop …",
      isAllowed: may("DROP TABLE", name),
      run: () =>
        change(`drop table ${table};`, {
          title: `Drop ${name} with all its rows?`,
          confirm: "Drop",
          isDangerous: true,
        }),
    },
  ]);
}

/** Of whatever has rows. */
function rowActions({ name, timestamp, partitionBy, kind }: Table): Offer[] {
  return [
    { name: "Show rows", isAllowed: maySomewhere("SELECT", name), run: () => showRows(name, timestamp) },
    ...partitionBy === "NONE" ? [] : [{
      name: "Show partitions",
      isAllowed: maySomewhere("SELECT", name),
      run: () => openAndRun(`show partitions from ${quoted(name)};`, `${name} partitions`),
    }],
    { name: "Write its name", run: () => insert(quoted(name)) },
    { name: "Copy its name", run: () => copyText(name, "The name") },
    { name: "Show its definition", run: () => openDefinition(name, kind) },
  ];
}

function materializedActions(shown: Table): MenuItem[] {
  const { name } = shown, view = quoted(name);
  return allowed([
    ...rowActions(shown),
    {
      name: "Refresh it in full …",
      isAllowed: may("REFRESH MATERIALIZED VIEW", name),
      run: () =>
        change(`refresh materialized view ${view} full;`, {
          title: `Compute all rows of ${name} again?`,
          confirm: "Refresh",
        }),
    },
    {
      name: "Drop …",
      isAllowed: may("DROP MATERIALIZED VIEW", name),
      run: () =>
        change(`drop materialized view ${view};`, {
          title: `Drop the materialized view ${name} with its rows?`,
          confirm: "Drop",
          isDangerous: true,
        }),
    },
  ]);
}

function viewActions(name: string, timestamp: string | null): MenuItem[] {
  const view = quoted(name);
  return allowed([
    {
      name: "Show rows",
      run: () => openAndRun(`select * from ${view}${latestFirst(timestamp)} limit 1000;`, name),
    },
    { name: "Write its name", run: () => insert(view) },
    { name: "Copy its name", run: () => copyText(name, "The name") },
    { name: "Show its definition", run: () => openDefinition(name, "view") },
    {
      name: "Drop …",
      isAllowed: may("DROP VIEW", name),
      run: () => change(`drop view ${view};`, { title: `Drop the view ${name}?`, confirm: "Drop", isDangerous: true }),
    },
  ]);
}

export function columnActions({ name: table, kind }: Table, { name, isTimestamp }: TableColumn): MenuItem[] {
  const column = quoted(name);
  const drop: Offer = {
    name: "Drop …",
    isAllowed: mayOn("DROP COLUMN", table, name),
    run: () =>
      change(`alter table ${quoted(table)} drop column ${column};`, {
        title: `Drop the column ${name} of ${table}?`,
        confirm: "Drop",
        isDangerous: true,
      }),
  };
  return allowed([
    { name: "Write its name", run: () => insert(column) },
    { name: "Copy its name", run: () => copyText(name, "The name") },
    {
      name: "Show its values",
      isAllowed: mayOn("SELECT", table, name),
      run: () =>
        openAndRun(`select ${column}, count() from ${quoted(table)} order by 2 desc limit 1000;`, `${table}.${name}`),
    },
    // The designated timestamp cannot be dropped.
    ...isTimestamp || kind !== "table" ? [] : [drop],
  ]);
}

/** Selects the columns that the user may read, because `select *` needs all of them. */
async function showRows(name: string, timestamp: string | null): Promise<void> {
  const columns = (await columnsOf(name)).map((column) => column.name);
  const readable = may("SELECT", name) ? ["*"] : columns.filter((column) => mayOn("SELECT", name, column)).map(quoted);
  openAndRun(`select ${readable.join(", ")} from ${quoted(name)}${latestFirst(timestamp)} limit 1000;`, name);
}

const latestFirst = (timestamp: string | null) => timestamp === null ? "" : ` order by ${quoted(timestamp)} desc`;

function insert(name: string): void {
  uncover();
  editor.insert(name);
}

function openAndRun(text: string, name: string): void {
  uncover();
  openTab(text, name);
  editor.runAll();
}

async function openDefinition(name: string, kind: Table["kind"]): Promise<void> {
  const { rows, error } = await query(`show create ${kind} ${quoted(name)}`), [row] = rows?.dataset ?? [];
  if (row === undefined) notify(error?.message ?? `${name} has no definition`);
  else {
    uncover();
    openTab(String(row[0]), `${name} (definition)`);
  }
}

const addColumn = (table: string): Promise<void> =>
  askAndRun({
    title: `Add a column to ${table}`,
    fields: [
      { name: "name", label: "Name" },
      { name: "type", label: "Type", choices: language.value.types, value: "DOUBLE" },
    ],
    confirm: "Add",
  }, ({ name, type }) => `alter table ${quoted(table)} add column ${quoted(name)} ${type};`);

const rename = (table: string): Promise<void> =>
  askAndRun({
    title: `Rename ${table}`,
    fields: [{ name: "name", label: "New name", value: table }],
    confirm: "Rename",
  }, ({ name }) => name === table ? undefined : `rename table ${literal(table)} to ${literal(name)};`);

/** Asks again with what was typed and the error, until the statement succeeds or the user cancels. */
async function askAndRun<Name extends string>(
  question: Question<Name> & { fields: readonly Field<Name>[] },
  statementOf: (values: Record<Name, string>) => string | undefined,
): Promise<void> {
  for (let { fields, text }: { fields: readonly Field<Name>[]; text?: string } = question;;) {
    const values = await ask({ ...question, fields, text });
    const statement = values && statementOf(values);
    if (values === undefined || statement === undefined) return;
    const error = await run(statement);
    if (error === undefined) return;
    fields = fields.map((field) => ({ ...field, value: values[field.name] }));
    text = error;
  }
}

interface Confirmation {
  title: string;
  confirm: string;
  isDangerous?: boolean;
}

async function change(statement: string, confirmation: Confirmation): Promise<void> {
  if (await ask({ ...confirmation, text: statement }) !== undefined) await run(statement);
}

/** Gives the error, which is also shown. */
async function run(statement: string): Promise<string | undefined> {
  const { error } = await query(statement);
  notify(error === undefined ? `Done: ${statement}` : error.message);
  await refreshSchema();
  return error?.message;
}
