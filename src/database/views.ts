/**
 * The views, in the table `_views`. Each change adds a row, the last one of a name counts, and a row without a text removes the view: so a change is one commit. All are in
 * memory, because binding needs them at once.
 */
import type { Session } from "../api.ts";
import { SqlError, SQLSTATE } from "../errors.ts";
import type { View, Views } from "../sql/plan.ts";
import type { TableSchema } from "../storage/mod.ts";
import { ownChange, ownRows } from "./own-statements.ts";
import { VIEWS_TABLE } from "./planning.ts";

const TABLE = VIEWS_TABLE;
const COLUMNS = "name VARCHAR, text VARCHAR, version LONG, changed TIMESTAMP";
const MAKE = `create table if not exists ${TABLE} (${COLUMNS})`;
/** With more rows for each view, a start deletes those that others have replaced. */
const ROWS_PER_VIEW_MAX = 20;

export interface ViewOptions {
  /** A session of the server itself. */
  session(): Session;
  table(name: string): TableSchema | undefined;
  log(level: "ERROR", message: string): void;
  /** The setting cairo.max.tables. */
  tableCountMax: number;
}

/** All views are in memory, by twice their characters. So many are allowed for each table: a fortieth of the memory that the tables may take. */
const LENGTH_A_TABLE = 256;
/** A view takes as much as so many characters besides its name and text. */
const LENGTH_A_VIEW = 1_000;

const lengthOf = ({ name, text }: View): number => LENGTH_A_VIEW + name.length + text.length;

export interface StoredView extends View {
  /** When it was made or last changed. */
  changedMicros: bigint;
}

export class StoredViews implements Views {
  /** By lower-case names, in the order of their creation. */
  private readonly byName = new Map<string, StoredView>();
  /** Lower-case names of views that are being made. */
  private readonly underway = new Set<string>();
  private version = 0;
  /** Sum of `lengthOf`. */
  private length = 0;
  /** Changes run one after the other. */
  private changing: Promise<unknown> = Promise.resolve();

  constructor(private readonly options: ViewOptions) {}

  /** Reads the views. */
  async open(): Promise<void> {
    const { table, session, log } = this.options;
    if (table(TABLE) === undefined) return;
    if (!this.hasTable()) return log("ERROR", `${TABLE} is another table than that of the views: none can be made`);
    const rows = await ownRows(session(), `select name, text, version, changed::long from ${TABLE} order by version`);
    const versions = new Map<string, number>();
    for (const [name, text, version, changed] of rows) {
      this.keep(String(name), text === null ? undefined : String(text), BigInt(String(changed)));
      this.version = Number(version);
      versions.set(String(name).toLowerCase(), this.version);
    }
    if (rows.length <= ROWS_PER_VIEW_MAX * Math.max(ROWS_PER_VIEW_MAX, this.byName.size)) return;
    const lasting = [...this.byName.keys()].map((key) => versions.get(key)!);
    await ownChange(session(), `delete from ${TABLE} where version not in (${[0, ...lasting].join()})`);
  }

  view(name: string): StoredView | undefined {
    return this.byName.get(name.toLowerCase());
  }

  all(): StoredView[] {
    return [...this.byName.values()];
  }

  isTaken(name: string): boolean {
    const key = name.toLowerCase();
    return this.byName.has(key) || this.underway.has(key);
  }

  async set({ name, text }: View, action: "create" | "replace" | "alter", at: number): Promise<void> {
    const key = name.toLowerCase();
    this.underway.add(key);
    try {
      await this.oneByOne(() => this.setNow({ name, text }, action, at));
    } finally {
      this.underway.delete(key);
    }
  }

  private async setNow({ name, text }: View, action: "create" | "replace" | "alter", at: number): Promise<void> {
    const { session, table } = this.options, known = this.view(name);
    const refused = (why: string, state: string) =>
      new SqlError(`Cannot ${action === "alter" ? "change" : "create"} view ${name}: ${why}`, at, state);
    if (action === "alter" && known === undefined) throw refused("it does not exist", SQLSTATE.undefinedTable);
    if (action === "create" && known !== undefined) throw refused("it exists already", SQLSTATE.duplicateTable);
    if (table(TABLE) !== undefined && !this.hasTable()) {
      throw refused(`${TABLE} is another table than that of the views`, SQLSTATE.objectNotInState);
    }
    const length = this.length - (known === undefined ? 0 : lengthOf(known)) + lengthOf({ name, text });
    const lengthMax = this.options.tableCountMax * LENGTH_A_TABLE;
    if (length > lengthMax) {
      const why =
        `with it, the views take ${length} characters, and at most ${lengthMax} are allowed (${LENGTH_A_TABLE} for each of cairo.max.tables)`;
      throw refused(why, SQLSTATE.configurationLimitExceeded);
    }
    await ownChange(session(), MAKE);
    await this.write(known?.name ?? name, text);
    // The writer takes changes one after the other, so a table that it has made meanwhile is known by now.
    if (table(name) === undefined) return;
    await this.write(name, undefined);
    throw refused("a table has the name", SQLSTATE.duplicateTable);
  }

  drop(name: string, at: number): Promise<void> {
    return this.oneByOne(async () => {
      if (this.view(name) === undefined) {
        throw new SqlError(`Cannot drop view ${name}: it does not exist`, at, SQLSTATE.undefinedTable);
      }
      await this.write(name, undefined);
    });
  }

  private hasTable(): boolean {
    const columns = this.options.table(TABLE)?.columns.map(({ name, type }) => `${name} ${type}`);
    return columns?.join(", ") === COLUMNS;
  }

  private async write(name: string, text: string | undefined): Promise<void> {
    const version = this.version + 1, values = text === undefined ? [name] : [name, text];
    const changedMicros = BigInt(Date.now()) * 1000n;
    const sql = `insert into ${TABLE} values ($1, ${text === undefined ? "null" : "$2"}, ${version}, ${changedMicros})`;
    await ownChange(this.options.session(), sql, values);
    this.version = version;
    this.keep(name, text, changedMicros);
  }

  private keep(name: string, text: string | undefined, changedMicros: bigint): void {
    const key = name.toLowerCase(), known = this.byName.get(key);
    if (known !== undefined) this.length -= lengthOf(known);
    if (text === undefined) this.byName.delete(key);
    else {
      this.byName.set(key, { name, text, changedMicros });
      this.length += lengthOf({ name, text });
    }
  }

  private oneByOne<T>(change: () => Promise<T>): Promise<T> {
    const done = this.changing.then(change);
    this.changing = done.catch(() => {});
    return done;
  }
}
