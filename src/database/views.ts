/**
 * The views, in the table `_views`. Each change adds a row, the last one of a name counts, and a row without a text removes the view: so a change is one commit. All are in
 * memory, because binding needs them at once.
 */
import type { Session } from "../api.ts";
import { SqlError, SQLSTATE } from "../errors.ts";
import type { View, Views } from "../sql/plan.ts";
import { ownChange, ownRows } from "./own-statements.ts";

const TABLE = "_views";
const MAKE = `create table if not exists ${TABLE} (name varchar, text varchar, version long, changed timestamp)`;
/** With more rows for each view, a start deletes those that others have replaced. */
const ROWS_PER_VIEW_MAX = 20;

export interface ViewOptions {
  /** A session of the server itself. */
  session(): Session;
  hasTable(name: string): boolean;
}

export class StoredViews implements Views {
  /** By lower-case names, in the order of their creation. */
  private readonly byName = new Map<string, View>();
  private version = 0;
  /** Changes run one after the other. */
  private changing: Promise<unknown> = Promise.resolve();

  constructor(private readonly options: ViewOptions) {}

  /** Reads the views. */
  async open(): Promise<void> {
    if (!this.options.hasTable(TABLE)) return;
    const rows = await ownRows(this.options.session(), `select name, text, version from ${TABLE} order by version`);
    const versions = new Map<string, number>();
    for (const [name, text, version] of rows) {
      this.keep(String(name), text === null ? undefined : String(text));
      this.version = Number(version);
      versions.set(String(name).toLowerCase(), this.version);
    }
    if (rows.length <= ROWS_PER_VIEW_MAX * Math.max(ROWS_PER_VIEW_MAX, this.byName.size)) return;
    const lasting = [...this.byName.keys()].map((key) => versions.get(key)!);
    await ownChange(this.options.session(), `delete from ${TABLE} where version not in (${[0, ...lasting].join()})`);
  }

  view(name: string): View | undefined {
    return this.byName.get(name.toLowerCase());
  }

  all(): View[] {
    return [...this.byName.values()];
  }

  set(view: View, { isNew, at }: { isNew: boolean; at: number }): Promise<void> {
    return this.oneByOne(async () => {
      const { name, text } = view;
      if (this.options.hasTable(name) || (isNew && this.view(name) !== undefined)) {
        throw new SqlError(`Cannot create view ${name}: the name is taken`, at, SQLSTATE.duplicateTable);
      }
      await ownChange(this.options.session(), MAKE);
      await this.write(this.view(name)?.name ?? name, text);
    });
  }

  drop(name: string, at: number): Promise<void> {
    return this.oneByOne(async () => {
      if (this.view(name) === undefined) {
        throw new SqlError(`Cannot drop view ${name}: it does not exist`, at, SQLSTATE.undefinedTable);
      }
      await this.write(name, undefined);
    });
  }

  private async write(name: string, text: string | undefined): Promise<void> {
    const version = this.version + 1, values = text === undefined ? [name] : [name, text];
    const sql = `insert into ${TABLE} values ($1, ${text === undefined ? "null" : "$2"}, ${version}, now())`;
    await ownChange(this.options.session(), sql, values);
    this.version = version;
    this.keep(name, text);
  }

  private keep(name: string, text: string | undefined): void {
    const key = name.toLowerCase();
    if (text === undefined) this.byName.delete(key);
    else this.byName.set(key, { name, text });
  }

  private oneByOne<T>(change: () => Promise<T>): Promise<T> {
    const done = this.changing.then(change);
    this.changing = done.catch(() => {});
    return done;
  }
}
