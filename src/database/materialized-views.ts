/**
 * Refreshes materialized views. A view is a table with the rows of its query. When the base table has changed, the buckets of the changed times are computed again, and
 * replace those of the view in one transaction. What has changed is found out from the segments of two snapshots (`storage/changed-times.ts`), so no reader of the
 * log is needed. After a start, a view whose base has another LSN than the view had when the server stopped is computed anew as far as the base has partitions.
 * With PERIOD, changed times from the end of the last complete period on are held back until it has moved.
 */
import type { ExecuteOptions, Prepared, Session } from "../api.ts";
import { SqlError, SQLSTATE } from "../errors.ts";
import type { Interval, Materialized, Refresh } from "../sql/plan.ts";
import {
  type Catalogue,
  type CatalogueMirror,
  ChangedTimes,
  type StorageWriter,
  type TableSnapshot,
} from "../storage/mod.ts";
import { quotedName } from "../sql/mod.ts";
import { BucketTimes, max, min, timeOf } from "./bucket-times.ts";
import { nextTick, Periods } from "./periods.ts";
import { nanosOf } from "../types/calendar.ts";
import type { Value } from "../types/mod.ts";

/** Changes within this time are one refresh. */
const DELAY_MS = 50;
/** A refresh waits for this many times the time that the last one took. */
const REST = 2;
const DELAY_MS_MAX = 5_000;
const RETRY_MS = 10_000;
/** Longer times are slept in parts: timers are shorter than 25 days. */
const SLEEP_MS_MAX = 3_600_000;

interface State {
  readonly id: number;
  /** Times whose rows are not up to date: both ends belong to them. "anew": rows of times that the base no longer has go, too. */
  pending: Interval[] | "all" | "anew";
  /** Times for which a refresh was asked, if nothing else is to be refreshed with them. */
  asked: Interval[];
  /** With PERIOD: times that are not up to date and whose periods were not complete at the last refresh. */
  held?: Interval;
  /** With PERIOD: the end of the last period that was complete at the last refresh. */
  periodHiMicros?: bigint;
  /** Refreshes when another period is complete. */
  periodTimer?: ReturnType<typeof setTimeout>;
  /** Since its last call, rows may have changed. Undefined before the first refresh. */
  changes?: ChangedTimes;
  /** A refresh is due or runs. */
  due?: "now" | "running";
  timer?: ReturnType<typeof setTimeout>;
  /** When the last refresh began and ended, in microseconds, and how long it took. */
  begunMicros?: bigint;
  endedMicros?: bigint;
  tookMs: number;
  /** LSN of the base of which the view has all rows. */
  upToLsn?: bigint;
}

export interface MaterializedOptions {
  readonly catalogue: Pick<CatalogueMirror, "onChange"> & Catalogue;
  readonly writer: Pick<StorageWriter, "change" | "open">;
  /** A session of the server itself. */
  session(): Session;
  nowMicros(): bigint;
  schemaChanged(): void;
  log(level: "ERROR" | "INFO", message: string): void;
}

/** What `materialized_views()` tells of a view, besides its definition. */
export interface RefreshFacts {
  begunMicros: bigint | null;
  endedMicros: bigint | null;
  upToLsn: bigint | null;
  baseLsn: bigint | null;
  isRefreshing: boolean;
  periodHiMicros: bigint | null;
}

export class MaterializedViews {
  private readonly states = new Map<number, State>();
  /** Ids of views by that of their base. */
  private readonly ofBase = new Map<number, Set<number>>();
  /** One refresh after the other. */
  private queue: Promise<void> = Promise.resolve();
  private readonly stop = new AbortController();
  private unsubscribe?: () => void;

  constructor(private readonly options: MaterializedOptions) {}

  open(): void {
    const { catalogue } = this.options;
    for (const { schema } of catalogue.tables()) {
      const { id, materialized } = schema;
      if (materialized === undefined) continue;
      const wasUpToDate = materialized.upToLsn !== undefined, state = this.add(id, materialized, wasUpToDate);
      if (wasUpToDate) this.queue = this.queue.then(() => this.resume(state, materialized));
    }
    this.unsubscribe = catalogue.onChange(({ tables }) => {
      for (const { tableId, dropped, schema } of tables) {
        if (schema?.materialized !== undefined) this.defined(tableId, schema.materialized);
        if (dropped) this.remove(tableId);
        const isOther = dropped || schema !== undefined;
        for (const view of this.ofBase.get(tableId) ?? []) {
          if (isOther) this.verify(view);
          this.changed(view);
        }
      }
    });
  }

  refresh(tableId: number, refresh: Refresh): void {
    const state = this.states.get(tableId);
    if (state === undefined) return;
    if (refresh.kind === "full") state.pending = "anew";
    else if (refresh.kind === "range") {
      const ticks = this.ticksOf(tableId);
      state.asked.push([refresh.fromMicros * ticks, refresh.toMicros * ticks - 1n]);
    }
    this.enqueue(state, refresh.kind);
  }

  factsOf(tableId: number): RefreshFacts {
    const state = this.states.get(tableId), { catalogue } = this.options;
    const baseId = catalogue.tableById(tableId)?.schema.materialized?.baseId ?? -1;
    return {
      begunMicros: state?.begunMicros ?? null,
      endedMicros: state?.endedMicros ?? null,
      upToLsn: state?.upToLsn ?? null,
      baseLsn: catalogue.tableById(baseId)?.lsn ?? null,
      isRefreshing: state?.due === "running",
      periodHiMicros: state?.periodHiMicros ?? null,
    };
  }

  /** Ends the refresh that runs, and remembers which views are up to date. */
  async close(): Promise<void> {
    this.unsubscribe?.();
    this.stop.abort(new Error("the server stops"));
    for (const { timer, periodTimer } of this.states.values()) {
      clearTimeout(timer);
      clearTimeout(periodTimer);
    }
    await this.queue;
    const { catalogue } = this.options;
    for (const { id, pending, upToLsn, periodHiMicros } of this.states.values()) {
      const materialized = catalogue.tableById(id)?.schema.materialized;
      if (materialized === undefined || !Array.isArray(pending) || pending.length > 0 || upToLsn === undefined) {
        continue;
      }
      if (catalogue.tableById(materialized.baseId)?.lsn !== upToLsn) continue;
      const upTo = {
        upToLsn: String(upToLsn),
        periodHiMicros: periodHiMicros === undefined ? undefined : Number(periodHiMicros),
      };
      if (materialized.upToLsn === upTo.upToLsn && materialized.periodHiMicros === upTo.periodHiMicros) continue;
      await this.redefine(id, upTo).catch((error) =>
        this.options.log("ERROR", `cannot remember that a view is up to date: ${messageOf(error)}`)
      );
    }
  }

  private defined(id: number, materialized: Materialized): void {
    const state = this.states.get(id);
    if (state !== undefined) return this.rest(state, materialized);
    const { isDeferred = false, kind } = materialized.refresh, added = this.add(id, materialized, isDeferred);
    if (!isDeferred && kind !== "immediate") this.enqueue(added);
  }

  /** After a start: nothing is pending if the base is as it was when the server stopped. */
  private async resume(state: State, { baseId, upToLsn, periodHiMicros }: Materialized): Promise<void> {
    const { catalogue, writer, log } = this.options;
    try {
      await writer.open(baseId);
      if (periodHiMicros !== undefined) await writer.open(state.id);
      const base = catalogue.tableById(baseId);
      // In one go, so that no reader sees a view as up to date whose held rows are not known yet.
      if (String(base?.lsn) === upToLsn) {
        state.changes = new ChangedTimes(base!);
        state.pending = [];
        state.upToLsn = base!.lsn;
        if (periodHiMicros !== undefined) this.hold(state, base!, BigInt(periodHiMicros));
      }
    } catch (error) {
      log("ERROR", `cannot read the base of a materialized view: ${messageOf(error)}`);
    }
    const definition = this.definitionOf(state);
    if (definition !== undefined) this.awaitPeriod(state, definition);
    if (!this.isUpToDate(state, baseId)) this.changed(state.id);
  }

  /** After a start: rows from this time on were held back. The view is open. */
  private hold(state: State, base: TableSnapshot, periodHiMicros: bigint): void {
    const view = this.options.catalogue.tableById(state.id)!, low = periodHiMicros * this.ticksOf(state.id);
    const last = [base, view].filter(({ rowCount }) => rowCount > 0).map(({ timestampMax }) => timestampMax!);
    const high = last.reduce(max, low - 1n);
    state.periodHiMicros = periodHiMicros;
    state.held = high < low ? undefined : [low, high];
  }

  private isUpToDate({ id, pending, held, upToLsn }: State, baseId: number): boolean {
    const { period } = this.options.catalogue.tableById(id)?.schema.materialized?.refresh ?? {};
    const isDone = Array.isArray(pending) && pending.length === 0 && (held === undefined || period !== undefined);
    return isDone && upToLsn === this.options.catalogue.tableById(baseId)?.lsn;
  }

  private add(id: number, materialized: Materialized, waits: boolean): State {
    const state: State = { id, pending: "all", asked: [], tookMs: 0 };
    this.states.set(id, state);
    const views = this.ofBase.get(materialized.baseId) ?? new Set();
    this.ofBase.set(materialized.baseId, views.add(id));
    if (materialized.refresh.kind === "timer") this.rest(state, materialized);
    else if (!waits && materialized.refresh.kind === "immediate") this.enqueue(state);
    return state;
  }

  private remove(id: number): void {
    const state = this.states.get(id);
    if (state === undefined) return;
    clearTimeout(state.timer);
    clearTimeout(state.periodTimer);
    this.states.delete(id);
    for (const views of this.ofBase.values()) views.delete(id);
  }

  /** The base has changed. */
  private changed(id: number): void {
    const state = this.states.get(id), kind = this.options.catalogue.tableById(id)?.schema.materialized?.refresh.kind;
    if (state === undefined || kind !== "immediate" || state.due !== undefined || state.timer !== undefined) return;
    if (this.definitionOf(state)?.fault !== undefined) return;
    this.later(state, Math.min(DELAY_MS_MAX, Math.max(DELAY_MS, REST * state.tookMs)));
  }

  /** The base has other columns or another name, or was dropped. So views become invalid that are refreshed later or when asked, too. */
  private verify(id: number): void {
    this.queue = this.queue.then(async () => {
      const state = this.states.get(id), definition = state && this.definitionOf(state);
      if (definition === undefined || definition.fault !== undefined || this.stop.signal.aborted) return;
      try {
        // The session that changes the base may not have told yet that statements are to be bound again.
        this.options.schemaChanged();
        await this.withBase(definition, () => this.check(id, definition));
      } catch (error) {
        // What may be otherwise next time is left to the next refresh.
        if (!this.stop.signal.aborted && isOfDefinition(error)) await this.invalidate(id, error);
      }
    });
  }

  private async invalidate(id: number, error: unknown): Promise<void> {
    const { log, catalogue } = this.options;
    log("ERROR", `materialized view ${catalogue.tableById(id)?.schema.name} is refreshed no more: ${messageOf(error)}`);
    await this.redefine(id, { fault: messageOf(error) }).catch((error) => log("ERROR", messageOf(error)));
  }

  /** Sets the time of the next refresh. */
  private rest(state: State, definition: Materialized): void {
    const { refresh, fault, baseId } = definition;
    clearTimeout(state.timer);
    state.timer = undefined;
    this.awaitPeriod(state, definition);
    if (fault !== undefined) return;
    if (refresh.kind === "immediate" && !this.isUpToDate(state, baseId)) this.changed(state.id);
    if (refresh.kind !== "timer") return;
    const now = this.options.nowMicros();
    state.timer = sleep(
      nextTick(refresh, now) - now,
      () => this.due(state),
      () => this.rest(state, this.definitionOf(state)!),
    );
  }

  /** Refreshes the view when another period is complete. Its first refresh is not begun by a period. */
  private awaitPeriod(state: State, { refresh: { kind, period }, fault, baseId }: Materialized): void {
    clearTimeout(state.periodTimer);
    if (period === undefined || kind === "manual" || fault !== undefined) return;
    if (state.changes === undefined || this.stop.signal.aborted) return;
    const periods = new Periods(period), now = this.options.nowMicros(), { periodHiMicros } = state;
    const isComplete = this.hasRows(baseId) &&
      (periodHiMicros === undefined || periods.completeTo(now) > periodHiMicros);
    state.periodTimer = isComplete ? setTimeout(() => this.enqueue(state)) : sleep(
      periods.next(now) - now,
      () => this.enqueue(state),
      () => this.awaitPeriod(state, this.definitionOf(state)!),
    );
  }

  private later(state: State, delayMs: number): void {
    state.timer = setTimeout(() => this.due(state), delayMs);
  }

  private due(state: State): void {
    state.timer = undefined;
    this.enqueue(state);
  }

  /** `kind`: "full" revives an invalid view, and "range" refreshes the asked times only. */
  private enqueue(state: State, kind: Refresh["kind"] = "incremental"): void {
    if (this.stop.signal.aborted || (kind === "incremental" && state.due === "now")) return;
    if (kind !== "range") {
      clearTimeout(state.timer);
      state.timer = undefined;
      state.due = "now";
    }
    this.queue = this.queue.then(() => this.run(state, kind));
  }

  private definitionOf({ id }: State): Materialized | undefined {
    return this.options.catalogue.tableById(id)?.schema.materialized;
  }

  private async run(state: State, kind: Refresh["kind"]): Promise<void> {
    const definition = this.definitionOf(state), { nowMicros, log, catalogue } = this.options;
    state.due = undefined;
    if (definition === undefined || this.stop.signal.aborted) return;
    if (definition.fault !== undefined && kind !== "full") return;
    const begun = performance.now();
    state.due = "running";
    state.begunMicros = nowMicros();
    let retryMs: number | undefined;
    try {
      await this.withBase(definition, async (base) => {
        await this.check(state.id, definition);
        if (kind === "range") return await this.refreshAsked(state, definition, base);
        await this.refreshPending(state, definition, base);
        state.upToLsn = base.lsn;
      });
      state.endedMicros = nowMicros();
      if (definition.fault !== undefined) await this.redefine(state.id, { fault: undefined });
    } catch (error) {
      if (this.stop.signal.aborted) return;
      const name = catalogue.tableById(state.id)?.schema.name;
      if (name === undefined) return;
      if (isOfDefinition(error)) await this.invalidate(state.id, error);
      else {
        log("ERROR", `cannot refresh materialized view ${name}, tries again: ${messageOf(error)}`);
        retryMs = RETRY_MS;
      }
    } finally {
      state.due = undefined;
      state.tookMs = performance.now() - begun;
    }
    const now = this.definitionOf(state);
    if (now === undefined || this.stop.signal.aborted) return;
    if (retryMs !== undefined) this.later(state, retryMs);
    else this.rest(state, now);
  }

  /** The base as it is now, which stays readable until the work is done. */
  private async withBase(
    { base: name, baseId }: Materialized,
    work: (base: TableSnapshot) => Promise<void>,
  ): Promise<void> {
    const { catalogue, writer } = this.options;
    await writer.open(baseId);
    const base = catalogue.tableById(baseId), unpin = catalogue.pin();
    try {
      if (base?.schema.name === name) return await work(base);
    } finally {
      unpin();
    }
    throw new SqlError(
      `its base table ${name} ${base === undefined ? "was dropped" : `is called ${base.schema.name} now`}`,
      0,
      SQLSTATE.undefinedTable,
    );
  }

  /** @throws {SqlError} if the query can no longer be read, or gives other columns. */
  private check(id: number, { text }: Materialized): Promise<void> {
    return this.within(id, async (_, { view, columns, prepare }) => {
      await prepare(`insert into ${view} (${columns}) select * from (${text})`);
    });
  }

  private async refreshAsked(state: State, definition: Materialized, base: TableSnapshot): Promise<void> {
    const asked = state.asked.splice(0);
    if (base.rowCount === 0) return;
    const times = new BucketTimes(definition, base);
    for (const interval of times.buckets(asked)) {
      for (const [low, high] of times.pieces(interval)) await this.replace(state.id, definition, times, low, high);
    }
  }

  /** Brings the pending times up to date. What fails stays pending. */
  private async refreshPending(state: State, definition: Materialized, base: TableSnapshot): Promise<void> {
    const { id } = state, found = state.changes?.next(base) ?? [];
    state.changes ??= new ChangedTimes(base);
    if (Array.isArray(state.pending)) state.pending.push(...found, ...(state.held === undefined ? [] : [state.held]));
    const { pending } = state;
    if (base.rowCount === 0) {
      if (Array.isArray(pending) && pending.length > 0 && this.hasRows(id)) {
        throw new SqlError(`${definition.base} has no rows any more`, 0, SQLSTATE.objectNotInState);
      }
      if (pending === "anew") await this.clear(id);
      state.pending = [];
      state.held = undefined;
      return;
    }
    await this.options.writer.open(id);
    const times = new BucketTimes(definition, base), view = this.options.catalogue.tableById(id);
    const intervals = this.complete(
      state,
      definition,
      times,
      Array.isArray(pending) ? times.buckets(pending) : [times.all(pending === "all" ? view : undefined)],
    );
    if (Array.isArray(pending)) state.pending = intervals.map(([low, end]): Interval => [low, end - 1n]);
    if (pending === "anew") await this.clear(id, times.type, intervals[0]);
    for (const [k, interval] of intervals.entries()) {
      for (const [low, high] of times.pieces(interval)) {
        await this.replace(id, definition, times, low, high);
        // What is left after a failure.
        if (Array.isArray(pending)) {
          const others = intervals.slice(k + 1).map(([from, to]): Interval => [from, to - 1n]);
          state.pending = high < interval[1] ? [[high, interval[1] - 1n], ...others] : others;
        }
      }
    }
    state.pending = [];
  }

  /** Of intervals between buckets, the parts before the end of the last complete period. The view holds the others back. */
  private complete(
    state: State,
    { refresh: { period } }: Materialized,
    times: BucketTimes,
    intervals: Interval[],
  ): Interval[] {
    state.held = undefined;
    if (period === undefined) {
      state.periodHiMicros = undefined;
      return intervals;
    }
    const now = new Periods(period).completeTo(this.options.nowMicros()), before = state.periodHiMicros;
    const hiMicros = state.pending === "anew" || before === undefined ? now : max(before, now);
    const hi = times.endOf(hiMicros * this.ticksOf(state.id) - 1n);
    state.periodHiMicros = hiMicros;
    const from = intervals.find(([, end]) => end > hi)?.[0];
    if (from !== undefined) state.held = [max(from, hi), intervals.at(-1)![1] - 1n];
    return intervals.filter(([low]) => low < hi).map(([low, end]) => [low, min(end, hi)]);
  }

  /** Removes the rows of a view, but for those within the interval. */
  private async clear(id: number, type?: string, kept?: Interval): Promise<void> {
    if (!this.hasRows(id)) return;
    await this.within(id, async (run, { view, time }) => {
      if (kept === undefined) await run(`delete from ${view}`);
      else await run(`delete from ${view} where ${time} < $1 or ${time} >= $2`, kept, [type!, type!]);
    });
  }

  private hasRows(id: number): boolean {
    return (this.options.catalogue.tableById(id)?.rowCount ?? 0) > 0;
  }

  /** Replaces the rows of the buckets that begin from `low` to before `high`, which are halved if they exceed the memory of a query. */
  private async replace(
    id: number,
    definition: Materialized,
    times: BucketTimes,
    low: bigint,
    high: bigint,
  ): Promise<void> {
    try {
      await this.replaceNow(id, definition, times, low, high);
    } catch (error) {
      const middle = times.middle(low, high);
      if (!(error instanceof SqlError) || error.sqlState !== SQLSTATE.outOfMemory || middle === undefined) throw error;
      await this.replace(id, definition, times, low, middle);
      await this.replace(id, definition, times, middle, high);
    }
  }

  private replaceNow(id: number, { text }: Materialized, times: BucketTimes, low: bigint, high: bigint): Promise<void> {
    return this.within(id, async (run, { view, time, columns, table }) => {
      const within = `${time} >= $1 and ${time} < $2`, range = [low, high], types = [times.type, times.type];
      const rows = `insert into ${view} (${columns}) select * from (${text}) where ${within}`;
      if (table.rowCount === 0 || table.timestampMax! < low || table.timestampMin! >= high) {
        return run(rows, range, types);
      }
      await run("begin");
      await run(`delete from ${view} where ${within}`, range, types);
      await run(rows, range, types);
      await run("commit");
    });
  }

  /** Runs statements over a view in a session of the server. Its open transaction is rolled back. */
  private async within(
    id: number,
    work: (
      run: (sql: string, values?: Value[], types?: string[]) => Promise<void>,
      of: {
        view: string;
        time: string;
        columns: string;
        table: TableSnapshot;
        prepare: (sql: string, types?: string[]) => Promise<Prepared> | Prepared;
      },
    ) => Promise<void>,
  ): Promise<void> {
    const { catalogue, session, writer } = this.options;
    await writer.open(id);
    const table = catalogue.tableById(id);
    if (table === undefined) return;
    const { schema } = table, own = session();
    const options: ExecuteOptions = {
      encoding: { name: "csv", delimiter: "," },
      signal: this.stop.signal,
      timeoutMs: 0,
    };
    const prepare = (sql: string, types?: string[]) => own.prepare(sql, types);
    const run = async (sql: string, values: Value[] = [], types: string[] = []) => {
      const answer = await (await prepare(sql, types)).execute(values, options);
      if (answer.kind === "rows") throw new Error(`${sql} gives rows`);
    };
    try {
      await work(run, {
        view: quotedName(schema.name),
        time: quotedName(timeOf(table).name),
        columns: schema.columns.map(({ name }) => quotedName(name)).join(),
        table,
        prepare,
      });
    } finally {
      await own.close();
    }
  }

  private ticksOf(id: number): bigint {
    return 1000n / nanosOf(timeOf(this.options.catalogue.tableById(id)!).type);
  }

  private async redefine(tableId: number, change: Partial<Materialized>): Promise<void> {
    const { catalogue, writer, schemaChanged } = this.options;
    const materialized = catalogue.tableById(tableId)?.schema.materialized;
    if (materialized === undefined) return;
    await writer.change({ kind: "setOptions", tableId, options: { materialized: { ...materialized, ...change } } });
    schemaChanged();
  }
}

/** Classes of SQL states of statements that are wrong: they fail each time. */
const WRONG = /^(?:42|22|55|0A|3F)/;

function isOfDefinition(error: unknown): boolean {
  return error instanceof SqlError && WRONG.test(error.sqlState);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** A timer for `then`. If that is long to wait for, it calls `again` meanwhile, which finds out anew how long. */
function sleep(micros: bigint, then: () => void, again: () => void): ReturnType<typeof setTimeout> {
  const ms = Number(micros / 1000n) + 1;
  return ms <= SLEEP_MS_MAX ? setTimeout(then, ms) : setTimeout(again, SLEEP_MS_MAX);
}
