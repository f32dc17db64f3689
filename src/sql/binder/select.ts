/**
 * SELECT: from sources to the order of the result. Each clause adds a node to the plan.
 *
 *     FROM → WHERE → LATEST ON → SAMPLE BY | GROUP BY → HAVING → windows → select list → DISTINCT → ORDER BY → LIMIT
 */
import { notSupported, SqlError, SQLSTATE } from "../../errors.ts";
import { didYouMean } from "../../nearest.ts";
import type { Expression, OrderItem, Query, Select, SelectItem, Source } from "../ast.ts";
import type { AggregateCall, Expr, Plan, SortKey } from "../plan.ts";
import { registry } from "../functions/mod.ts";
import { isVolatile } from "../planner/push-filters.ts";
import { type Binding, findVariable, innerNames, type Names, plainOf, typeMismatch } from "./context.ts";
import type { Scope } from "./expression-binder.ts";
import { Expressions } from "./expressions.ts";
import { groupPlan, isAggregated } from "./grouping.ts";
import { withLaterTables } from "./later-tables.ts";
import { latestPlan } from "./latest.ts";
import { type LatestFirst, refuseAmbiguous, withLatestFirst } from "./latest-joins.ts";
import { givesNoRows, noRows } from "./no-rows.ts";
import { tolerant } from "./tolerant.ts";
import { leavingOutIntervals } from "./membership.ts";
import {
  columnOf,
  columnsOf,
  columnsRead,
  conjuncts,
  crossJoin,
  filter,
  hasPlaceholder,
  placed,
  project,
  rewrite,
  sameExpr,
  sort,
  timeAmong,
  timeOf,
  walk,
} from "./plans.ts";
import { pivotRelation } from "./pivot.ts";
import { samplePlan, withPartialTimestamp } from "./sampling.ts";
import {
  candidates,
  markUsed,
  nothing,
  type Relation,
  type ScopeColumn,
  uniqueNames,
  type WantedName,
} from "./scope.ts";
import { bindLimit } from "./limit.ts";
import type { BoundQuery, Language, OrderKey, OutputItem, Queries, QueryOptions } from "./query.ts";
import { bindSet } from "./sets.ts";
import { bindSource } from "./sources.ts";
import { Subqueries } from "./subqueries.ts";
import { columnName, expressionText, isPlain } from "./text.ts";
import { UnnestCollector, unnestOver } from "./unnest.ts";
import { displayName, isText, isTimestamp } from "./types.ts";
import { windowJoinPlan } from "./window-joins.ts";
import { WindowCollector } from "./windows.ts";
import { sameName } from "../../types/names.ts";

export class QueryBinder implements Queries {
  readonly expressions: Expressions;

  constructor(readonly binding: Binding, readonly language: Language) {
    this.expressions = new Expressions(binding);
  }

  bind(query: Query, names: Names, options: QueryOptions = {}): BoundQuery {
    this.binding.spend(1, query.at);
    return this.binding.nested(query.at, () => {
      const inner = innerNames(query, names);
      if (query.kind === "set") return bindSet(this, query, inner);
      const select = withLaterTables(query);
      const { pivot } = select;
      if (pivot === undefined) {
        const latest = withLatestFirst(this, select, inner);
        return new SelectBinder(this, latest?.select ?? select, inner, options, { latest }).bind();
      }
      if (options.outer !== undefined) throw notSupported("PIVOT in a correlated sub-query", pivot.at);
      // The select list and what follows PIVOT are over its rows.
      const rows = pivotRelation(this, { ...select, pivot }, inner);
      const rest = { ...select, where: undefined, latestOn: undefined, pivot: undefined };
      return new SelectBinder(this, rest, inner, options, { rows }).bind();
    });
  }
}

/** Limit of variables that are expanded for the names of a select list's columns. */
const EXPANSIONS_MAX = 2_000;

class SelectBinder {
  private readonly expressions: Expressions;
  private readonly binding: Binding;
  private relation: Relation = nothing();
  private plan!: Plan;
  private readonly aggregates: AggregateCall[] = [];
  private readonly aggregateOrders: { keys: SortKey[]; call: AggregateCall }[] = [];
  private readonly windows: WindowCollector;
  private readonly unnests: UnnestCollector;
  private subqueries!: Subqueries;
  /** True if samples have neither a time nor an aggregate: they repeat, unlike other groups. */
  private repeats = false;

  constructor(
    private readonly queries: Queries,
    private readonly select: Select,
    private readonly names: Names,
    private readonly options: QueryOptions,
    /** Rows in the place of those of FROM, or of its first source. */
    private readonly bound: { rows?: Relation; latest?: LatestFirst },
  ) {
    this.expressions = queries.expressions;
    this.binding = queries.binding;
    this.windows = new WindowCollector(this.expressions, select.windows);
    this.unnests = new UnnestCollector(this.expressions);
  }

  bind(): BoundQuery {
    const { select } = this;
    if (select.from === undefined) this.refuseWithoutFrom();
    else this.relation = this.bound.rows ?? this.sourceOf(select.from);
    this.plan = this.relation.plan;
    // Columns cost less than expressions, but using a sub-query's name twice doubles them.
    this.binding.spend(this.relation.columns.length >> 3, select.at);
    this.subqueries = this.subqueriesOver(this.plan);
    if (this.relation.isEmpty === true && givesNoRows(select)) return this.withoutRows();
    if (select.where !== undefined) {
      if (select.from !== undefined && isPlainJoin(select.from)) this.refuseUnlikeKeys(select.where);
      const predicate = this.expressions.condition(leavingOutIntervals(select.where, this.relation), {
        columns: this.relation.columns,
        names: this.names,
        subqueries: this.subqueries,
        isFilter: true,
      });
      this.refuseUnfiltered(predicate);
      this.plan = filter(this.plan, predicate);
    }
    this.refuseBesideJoins();
    if (select.latestOn !== undefined) {
      this.plan = latestPlan(this.expressions, this.relation, this.plan, select.latestOn, this.names);
    }
    this.windows.timestamp = this.timestampNow();
    this.subqueries = this.subqueriesOver(this.plan);
    const items = this.outputItems();
    const orders = this.orderKeys(items);
    this.applyUnnest(items, orders);
    const grouped = this.group(items, orders);
    this.applyWindows(items, orders, grouped);
    return this.finish(items, orders, grouped);
  }

  /** Columns of the right side of a WINDOW JOIN or HORIZON JOIN cannot be used in WHERE. */
  private refuseUnfiltered(predicate: Expr): void {
    const { unfiltered, isHorizon } = this.relation;
    if (unfiltered === undefined) return;
    for (const condition of conjuncts(predicate)) {
      for (const column of columnsIn(condition)) {
        if (column.index < unfiltered.first || column.index >= unfiltered.end) continue;
        const at = this.binding.positionOf(isHorizon === true ? condition : column);
        throw new SqlError("WHERE can only use columns of the left side of this join", at, SQLSTATE.grouping);
      }
    }
  }

  /** Clauses that cannot be combined with a WINDOW JOIN or HORIZON JOIN. */
  private refuseBesideJoins(): void {
    const { select: { sampleBy, groupBy, having, havingAt, latestOn }, relation: { windowJoins, isHorizon } } = this;
    if (windowJoins === undefined && isHorizon !== true) return;
    const join = isHorizon === true ? "HORIZON JOIN" : "WINDOW JOIN";
    const refuse = (clause: string, at: number): never => {
      throw new SqlError(`${clause} cannot be combined with a ${join}: use a sub-query`, at, SQLSTATE.grouping);
    };
    if (sampleBy !== undefined) refuse("SAMPLE BY", sampleBy.interval.at);
    if (latestOn !== undefined) refuse("LATEST ON", latestOn.at);
    if (windowJoins === undefined) return;
    if (groupBy !== undefined) refuse("GROUP BY", groupBy.items[0]!.at);
    if (having !== undefined) refuse("HAVING", havingAt!);
  }

  private sourceOf(from: Source): Relation {
    const { queries, names, options: { outer } } = this;
    const { latest } = this.bound;
    if (latest !== undefined) {
      const relation = bindSource(queries, from, names, [], latest.first);
      refuseAmbiguous(latest.tested, relation.columns);
      return relation;
    }
    if (outer === undefined) return bindSource(queries, from, names);
    const around = { plan: outer.plan, columns: outer.columns, isTable: false, timestamp: -1 };
    return unnestOver(queries, from, around, names) ?? beside(bindSource(queries, from, names, outer.columns), outer);
  }

  /** Computes nothing: only the names and types of the columns are needed. */
  private withoutRows(): BoundQuery {
    const { where, limit } = this.select;
    const scope = { columns: this.relation.columns, names: this.names, subqueries: this.subqueries };
    if (where !== undefined) tolerant(() => this.expressions.condition(where, scope));
    const items = this.outputItems();
    for (const order of this.select.orderBy) tolerant(() => this.orderKey(order, items));
    const plan = noRows(items.map(({ name, expr: { type } }) => ({ name, type: type === "NULL" ? "STRING" : type })));
    const limited = limit === undefined ? plan : bindLimit(this.expressions, plan, limit, this.names);
    return { plan: limited, visible: items.length, timestamp: -1, isEmpty: true };
  }

  /** Sub-queries over rows of `base`. Those joined earlier are not repeated in later ones. */
  private subqueriesOver(base: Plan): Subqueries {
    return new Subqueries(this.queries, {
      base,
      columns: this.relation.columns,
      input: () => this.plan,
      replace: (plan) => this.plan = plan,
    });
  }

  /** Refuses clauses that need rows. @throws at the first of them. */
  private refuseWithoutFrom(): void {
    const { whereAt, groupBy, orderByAt, limit } = this.select;
    const refuse = (word: string, at: number): never => {
      throw new SqlError(`${word} needs FROM`, at);
    };
    if (whereAt !== undefined) refuse("WHERE", whereAt);
    if (groupBy !== undefined) refuse("GROUP", groupBy.at);
    if (orderByAt !== undefined) refuse("ORDER", orderByAt);
    const { low, high, offset } = limit ?? {};
    if (limit !== undefined && (low ?? high ?? offset) !== undefined) throw new SqlError("LIMIT needs FROM", limit.at);
  }

  /** Equal columns of two tables in WHERE are join keys too: of the same type, or both texts. */
  private refuseUnlikeKeys(where: Expression): void {
    if (where.kind !== "binary") return;
    if (where.operator === "and") {
      this.refuseUnlikeKeys(where.left);
      this.refuseUnlikeKeys(where.right);
    }
    if (where.operator !== "=" || where.left.kind !== "column" || where.right.kind !== "column") return;
    const [left, ...others] = candidates(this.relation.columns, where.left.path);
    const [right, ...more] = candidates(this.relation.columns, where.right.path);
    if (left === undefined || right === undefined || others.length + more.length > 0) return;
    const isAlike = left.type === right.type || (isText(left.type) && isText(right.type)) ||
      (isTimestamp(left.type) && isTimestamp(right.type));
    if (left.qualifier === right.qualifier || isAlike) return;
    throw typeMismatch(
      `the keys of the join differ: ${displayName(left.type)} and ${displayName(right.type)}`,
      where.right.at,
    );
  }

  /** The timestamp column at this step of the plan. LATEST ON may have changed it. */
  private timestampNow(): number {
    return this.plan.node === "latest" ? this.plan.timestamp : this.relation.timestamp;
  }

  private listScope(aliases: Map<string, Expr>): Scope {
    return {
      columns: this.relation.columns,
      names: this.names,
      aliases,
      aggregates: this.aggregates,
      shareAggregates: this.select.sampleBy?.fill === undefined,
      aggregateOrder: (keys, call) => this.aggregateOrders.push({ keys, call }),
      windows: this.windows,
      unnest: this.unnests,
      subqueries: {
        membership: (...of) => this.subqueries.membership(...of),
        scalar: (...of) => this.subqueries.value(...of),
        exists: (...of) => this.subqueries.exists(...of),
        array: (...of) => this.subqueries.array(...of),
      },
    };
  }

  private aliases = new Map<string, Expr>();

  private outputItems(): OutputItem[] {
    const { select } = this;
    const hasStar = select.items.some((item) => item.expression.kind === "star");
    if (hasStar && select.groupBy !== undefined) {
      throw new SqlError("SELECT * cannot be combined with GROUP BY", 0, SQLSTATE.grouping);
    }
    // A variable may occur twice in the next one, and so on, which doubles its text each time; it would be truncated
    // anyway.
    let expansions = 0;
    const variable = (name: string): Expression | undefined =>
      ++expansions > EXPANSIONS_MAX ? undefined : findVariable(this.names, name)?.value;
    const listed: { item: SelectItem; column?: ScopeColumn; wanted: WantedName }[] = [];
    for (const item of select.items) {
      if (item.expression.kind === "star") {
        for (const column of this.starColumns(item.expression)) {
          markUsed(column, item.at);
          if (column.notice !== undefined) this.binding.notices.add(column.notice);
          listed.push({ item, column, wanted: { text: column.name, isStar: true } });
        }
      } else if (item.alias !== undefined) {
        if (item.alias.text === "") throw new SqlError("the column name is empty", item.alias.at);
        listed.push({ item, wanted: { alias: item.alias } });
      } else {
        const text = columnName(item.expression, variable);
        listed.push({ item, wanted: { text, isStar: false } });
      }
    }
    const names = uniqueNames(listed.map(({ wanted }) => wanted));
    const output: OutputItem[] = [];
    listed.forEach(({ item, column }, i) => {
      if (column !== undefined) {
        const expr: Expr = this.binding.at({ kind: "column", index: column.index, type: column.type }, item.at);
        output.push({ item, expr, name: names[i]!, aliased: false });
        return;
      }
      const scope = this.listScope(this.aliases);
      const bind = () => this.expressions.settle(this.expressions.bind(this.countOf(item.expression), scope), "STRING");
      const expr = this.relation.isEmpty === true && givesNoRows(select)
        ? tolerant(bind) ?? this.expressions.nullOf("STRING")
        : bind();
      if (item.alias !== undefined) this.aliases.set(item.alias.text.toLowerCase(), expr);
      output.push({ item, expr, name: names[i]!, aliased: item.alias !== undefined });
    });
    if (output.length === 0) throw new SqlError("the select list is empty", select.items[0]?.at ?? select.at);
    return output;
  }

  /** Treats the single word `count` as count(*), unless there is a column of that name. */
  private countOf(e: Expression): Expression {
    if (e.kind !== "column" || e.path.length > 1 || e.path[0]!.quoted || e.path[0]!.text.toLowerCase() !== "count") {
      return e;
    }
    if (this.select.from === undefined || candidates(this.relation.columns, e.path).length > 0) return e;
    return { kind: "call", at: e.at, name: "count", args: [], distinct: false, ignoreNulls: false };
  }

  private starColumns(star: Extract<Expression, { kind: "star" }>): readonly ScopeColumn[] {
    const { columns } = this.relation;
    if (star.table === undefined) {
      if (this.select.from === undefined) throw new SqlError("* needs a table: there is no FROM", star.at);
      return columns.filter(({ outer, isMerged, isSystem }) =>
        outer === undefined && isMerged !== true && isSystem !== true
      );
    }
    const qualifier = star.table.text.toLowerCase();
    const own = columns.filter((column) => column.qualifier === qualifier && column.isSystem !== true);
    if (own.length === 0) {
      const known = new Set(columns.flatMap((column) => column.qualifier ?? []));
      const hint = didYouMean(star.table.text, known);
      throw new SqlError(`there is no table ${star.table.text} in FROM${hint}`, star.at, SQLSTATE.undefinedTable);
    }
    return own;
  }

  /** ORDER BY: positions, result columns, then any expression over the sources, in which a column hides an alias of its name. */
  private orderKeys(items: OutputItem[]): OrderKey[] {
    return this.select.orderBy.map((order) =>
      this.orderKey({ ...order, expression: plainOf(order.expression, this.names) }, items)
    );
  }

  private orderKey(order: OrderItem, items: OutputItem[]): OrderKey {
    const output = this.outputOf(order, items);
    if (output !== undefined) return { order, output };
    const scope = { ...this.listScope(this.aliases), aliasesFirst: this.hasGroups() };
    const expr = this.expressions.settle(this.expressions.bind(order.expression, scope), "STRING");
    const same = items.findIndex((item) => sameExpr(item.expr, expr));
    return same >= 0 ? { order, output: same } : { order, expr };
  }

  /** True if ORDER BY is about groups or distinct rows, so that most columns of the sources are not available to it. */
  private hasGroups(): boolean {
    const { select, aggregates, relation } = this;
    return select.distinct || select.groupBy !== undefined || select.sampleBy !== undefined || aggregates.length > 0 ||
      relation.isHorizon === true;
  }

  private outputOf(order: OrderItem, items: OutputItem[]): number | undefined {
    const e = order.expression;
    if (e.kind === "number" && /^\d+$/.test(e.text)) {
      const position = Number(e.text);
      if (position < 1 || position > items.length) {
        throw new SqlError(`there is no column ${e.text} in the select list`, e.at, SQLSTATE.grouping);
      }
      return position - 1;
    }
    if (isPlain(e)) {
      throw new SqlError("ORDER BY needs a column: a constant has no effect", e.at, SQLSTATE.grouping);
    }
    if (e.kind !== "column" || e.path.length !== 1) {
      if (!this.hasGroups()) return undefined;
      // The same expression as in the select list is meant, where names are those of columns.
      const text = expressionText(e);
      const same = items.findIndex(({ item }) => expressionText(item.expression) === text);
      return same >= 0 ? same : undefined;
    }
    const name = e.path[0]!.text;
    const found = items.findIndex((item) => sameName(item.name, name) || item.name === `"${name}"`);
    return found >= 0 ? found : undefined;
  }

  /** Adds the grouping to the plan and rewrites items and order keys over its output. */
  private group(items: OutputItem[], orders: OrderKey[]): boolean {
    const { select } = this;
    if (select.sampleBy !== undefined) {
      if (select.groupBy !== undefined) {
        throw new SqlError("SAMPLE BY cannot be combined with GROUP BY", select.groupBy.at, SQLSTATE.grouping);
      }
      if (this.aggregateOrders.length > 0) {
        throw notSupported("ORDER BY in an aggregate beside SAMPLE BY", this.aggregateOrders[0]!.call.at);
      }
      if (select.having !== undefined) {
        throw new SqlError(
          "SAMPLE BY cannot be combined with HAVING: filter a sub-query",
          select.havingAt!,
          SQLSTATE.grouping,
        );
      }
      const star = select.items.find(({ expression }) => expression.kind === "star");
      if (star !== undefined) {
        throw new SqlError("SAMPLE BY needs its columns by name, not *", star.expression.at, SQLSTATE.grouping);
      }
      const timestamp = this.timestampNow();
      this.windowsBelow("SAMPLE BY", items, orders);
      const relation = withPartialTimestamp({ ...this.relation, plan: this.plan, timestamp }, select.sampleBy);
      if (this.aggregates.length === 0) this.countSamples(items, relation.timestamp);
      this.plan = samplePlan(this.expressions, relation, select.sampleBy, items, orders, this.aggregates, this.names);
      return true;
    }
    const { windowJoins, isHorizon } = this.relation;
    if (windowJoins !== undefined || isHorizon === true) this.refuseCallsBesideJoins();
    if (windowJoins !== undefined) {
      this.plan = windowJoinPlan(this.binding, this.plan, windowJoins, items, orders, this.aggregates);
      return false;
    }
    const isPlain = select.groupBy === undefined && this.aggregates.length === 0 && select.having === undefined;
    if (isPlain && isHorizon !== true) return false;
    this.windowsBelow("an aggregate", items, orders);
    const having = select.having === undefined ? undefined : this.expressions.condition(select.having, {
      ...this.listScope(this.aliases),
      aliasesFirst: true,
      windows: undefined,
      subqueries: undefined,
    });
    const keys = select.groupBy?.items.map((item) => this.groupKey(item, items));
    this.orderForAggregates();
    this.plan = groupPlan(this.binding, this.plan, items, orders, this.aggregates, keys, having);
    return true;
  }

  /** Computes the window functions in arguments of aggregates, before their rows are grouped. There can be no others beside aggregates. */
  private windowsBelow(grouping: string, items: OutputItem[], orders: OrderKey[]): void {
    if (this.windows.calls.length === 0) return;
    if ([...items, ...orders].some(({ expr }) => expr !== undefined && hasPlaceholder(expr, "window"))) {
      const message = `a window function cannot be combined with ${grouping}: use a sub-query`;
      throw new SqlError(message, 0, SQLSTATE.grouping);
    }
    const first = this.plan.columns.length;
    this.plan = this.windows.plan(this.plan);
    for (const call of this.aggregates) call.args = call.args.map((arg) => this.windows.replace(arg, first));
  }

  /** `SELECT DISTINCT ts, key … SAMPLE BY`: the buckets and keys that have rows. FILL needs an aggregate, so rows are counted. */
  private countSamples(items: OutputItem[], timestamp: number): void {
    const { select } = this, { at } = select.sampleBy!.interval;
    if (!select.distinct) {
      throw new SqlError("SAMPLE BY needs an aggregate in the select list", at, SQLSTATE.grouping);
    }
    const isTime = ({ expr }: OutputItem) => expr.kind === "column" && expr.index === timestamp;
    this.repeats = !items.some(isTime);
    this.expressions.bind(
      { kind: "call", at, name: "count", args: [], distinct: false, ignoreNulls: false },
      this.listScope(this.aliases),
    );
  }

  private refuseCallsBesideJoins(): void {
    const { windows: { calls: [call] }, unnests, aggregateOrders: [order], relation: { windowJoins } } = this;
    if (call !== undefined) {
      throw new SqlError(
        "a window function cannot be combined with a WINDOW JOIN or HORIZON JOIN: use a sub-query",
        call.at,
        SQLSTATE.grouping,
      );
    }
    if (unnests.isUsed) throw notSupported("unnest beside a WINDOW JOIN or HORIZON JOIN (put it in FROM)", unnests.at);
    if (windowJoins === undefined || order === undefined) return;
    throw notSupported("ORDER BY in an aggregate of a WINDOW JOIN", order.call.at);
  }

  private orderForAggregates(): void {
    const [first, ...others] = this.aggregateOrders;
    if (first === undefined) return;
    const { at } = first.call;
    const isSame = (keys: SortKey[]): boolean =>
      keys.length === first.keys.length && keys.every((key, i) => {
        const { expression, descending, nulls } = first.keys[i]!;
        return key.descending === descending && key.nulls === nulls && sameExpr(key.expression, expression);
      });
    if (!others.every(({ keys }) => isSame(keys))) throw notSupported("aggregates of several orders in one query", at);
    const other = this.aggregates.find((aggregate) =>
      registry.resolve(aggregate.function).entry.aggregate?.ordered &&
      !this.aggregateOrders.some(({ call }) => call === aggregate)
    );
    if (other !== undefined) throw notSupported("an aggregate of another order beside one with ORDER BY", other.at);
    this.plan = sort(this.plan, first.keys);
  }

  private groupKey(key: Expression, items: OutputItem[]): { expr: Expr; at: number } {
    const e = plainOf(key, this.names);
    if (e.kind === "number" && /^\d+$/.test(e.text)) {
      const position = Number(e.text);
      if (position < 1 || position > items.length) {
        throw new SqlError(`there is no column ${e.text} in the select list`, e.at, SQLSTATE.grouping);
      }
      const { expr } = items[position - 1]!;
      if (isAggregated(expr)) {
        throw new SqlError(`column ${e.text} is an aggregate: it cannot be a key of GROUP BY`, e.at, SQLSTATE.grouping);
      }
      return { expr, at: e.at };
    }
    const scope: Scope = {
      columns: this.relation.columns,
      names: this.names,
      aliases: this.aliases,
      aliasesFirst: e.kind === "column",
    };
    const expr = this.expressions.settle(this.expressions.bind(e, scope), "STRING");
    if (isAggregated(expr)) throw new SqlError("an aggregate cannot be a key of GROUP BY", e.at, SQLSTATE.grouping);
    return { expr, at: e.at };
  }

  private applyUnnest(items: OutputItem[], orders: OrderKey[]): void {
    const { unnests, select, windows, aggregates } = this;
    if (!unnests.isUsed) return;
    const beside = windows.calls.length > 0
      ? "window functions"
      : aggregates.length > 0
      ? "aggregates"
      : select.groupBy !== undefined
      ? "GROUP BY"
      : select.sampleBy !== undefined
      ? "SAMPLE BY"
      : undefined;
    if (beside !== undefined) throw notSupported(`unnest beside ${beside} (put it in FROM)`, unnests.at);
    const first = this.plan.columns.length;
    this.plan = unnests.plan(this.plan);
    const place = (expr: Expr): Expr => placed(expr, "unnest", first);
    for (const item of items) item.expr = place(item.expr);
    for (const order of orders) if (order.expr !== undefined) order.expr = place(order.expr);
  }

  private applyWindows(items: OutputItem[], orders: OrderKey[], grouped: boolean): void {
    if (grouped || this.windows.calls.length === 0) return;
    const first = this.plan.columns.length;
    this.plan = this.windows.plan(this.plan);
    const place = (expr: Expr): Expr => this.windows.replace(expr, first);
    for (const item of items) item.expr = place(item.expr);
    for (const order of orders) if (order.expr !== undefined) order.expr = place(order.expr);
  }

  /**
   * Computes an aliased volatile expression once, as a column below the others, so that all uses of the alias have the
   * same value.
   */
  private computeOnce(items: OutputItem[], orders: OrderKey[]): void {
    const others = (
      expr: Expr,
    ): Expr[] => [
      ...items.filter((item) => item.expr !== expr).map((item) => item.expr),
      ...orders.flatMap((order) => order.expr ?? []),
    ];
    const shared = items.filter(({ expr, aliased }) =>
      aliased && expr.kind === "call" && isVolatile(expr) && others(expr).some((other) => contains(other, expr))
    );
    for (const { expr } of shared) {
      const index = this.plan.columns.length;
      this.plan = project(this.plan, [...columnsOf(this.plan), expr], [
        ...this.plan.columns.map((column) => column.name),
        `value ${index}`,
      ]);
      const place = (other: Expr): Expr =>
        rewrite(other, (e) => e === expr ? { kind: "column", index, type: expr.type } : undefined);
      for (const item of items) item.expr = place(item.expr);
      for (const order of orders) if (order.expr !== undefined) order.expr = place(order.expr);
    }
  }

  private finish(items: OutputItem[], orders: OrderKey[], grouped: boolean): BoundQuery {
    const { select } = this;
    this.computeOnce(items, orders);
    const expressions = items.map((item) => item.expr);
    const names = items.map((item) => item.name);
    const visible = items.length;
    // Order keys that are not selected become hidden columns.
    const distinct = select.distinct && !(grouped && this.aggregates.length > 0 && !this.repeats);
    const { timestamp } = this.plan, shown = timeAmong(expressions, this.plan);
    const keys: SortKey[] = orders.map((order) => {
      const { descending, nulls } = order.order;
      if (distinct && order.expr !== undefined) {
        return { expression: overOutput(order.expr, items, order.order.at), descending, nulls };
      }
      let index = order.output;
      const byTime = order.expr?.kind === "column" && order.expr.index === timestamp;
      if (byTime && shown.order !== "none") index = shown.timestamp;
      if (index === undefined) {
        index = expressions.push(order.expr!) - 1;
        names.push(`order key ${index}`);
      }
      return { expression: { kind: "column", index, type: expressions[index]!.type }, descending, nulls };
    });
    const hidesTime = timestamp >= 0 && !distinct && shown.timestamp < 0;
    const keepsTime = hidesTime && (this.options.keepTimestamp === true || keys.length > 0);
    // It may be an order key already.
    if (keepsTime && timeAmong(expressions, this.plan).timestamp < 0) {
      expressions.push(columnOf(this.plan, timestamp));
      names.push(this.plan.columns[timestamp]!.name);
    }
    let plan: Plan = isWhole(this.plan, expressions, names) ? this.plan : project(this.plan, expressions, names);
    if (distinct) plan = { node: "distinct", input: plan, columns: plan.columns, timestamp: -1, order: "none" };
    let orderedBy = -1;
    if (keys.length > 0) {
      const index = timeOf(keys);
      if (index < visible) orderedBy = index;
      plan = sort(plan, keys);
    }
    const keptTime = this.options.keepTimestamp === true && keepsTime && plan.timestamp >= visible;
    const width = keptTime ? visible + 1 : visible;
    if (expressions.length > width) {
      const kept = [...Array(visible).keys(), ...(keptTime ? [plan.timestamp] : [])];
      plan = project(plan, kept.map((index) => columnOf(plan, index)), kept.map((index) => names[index]!));
    }
    if (select.limit !== undefined) {
      plan = bindLimit(this.expressions, plan, select.limit, this.names);
    }
    const byTime = plan.timestamp >= 0 ? plan.timestamp : orderedBy;
    return { plan, visible, timestamp: byTime };
  }
}

/** Combines each row of the relation with each row of the enclosing query. */
function beside(relation: Relation, { plan, columns }: NonNullable<QueryOptions["outer"]>): Relation {
  const left = relation.plan, first = left.columns.length;
  return {
    ...relation,
    isTable: false,
    plan: crossJoin(left, plan),
    columns: [...relation.columns, ...columns.map((column) => ({ ...column, index: first + column.index }))],
  };
}

function columnsIn(expr: Expr): (Expr & { kind: "column" })[] {
  const found: (Expr & { kind: "column" })[] = [];
  walk(expr, (e) => {
    if (e.kind === "column") found.push(e);
  });
  return found;
}

function contains(expr: Expr, part: Expr): boolean {
  let found = false;
  walk(expr, (e) => {
    if (e === part) found = true;
  });
  return found;
}

/** Rewrites an order key over the select list. After DISTINCT nothing else is available. */
function overOutput(expr: Expr, items: readonly OutputItem[], at: number): Expr {
  const over = rewrite(expr, (e) => {
    const index = items.findIndex((item) => sameExpr(item.expr, e));
    return index < 0 ? undefined : { kind: "placeholder", of: "item", index, type: e.type };
  });
  if (columnsRead(over).size > 0) {
    throw new SqlError("ORDER BY of SELECT DISTINCT needs columns of the select list", at, SQLSTATE.grouping);
  }
  return placed(over, "item", 0);
}

/** True if the projection returns its input unchanged. */
function isWhole(plan: Plan, expressions: Expr[], names: string[]): boolean {
  return expressions.length === plan.columns.length &&
    expressions.every((e, i) => e.kind === "column" && e.index === i && plan.columns[i]!.name === names[i]);
}

/** True for tables listed with commas, which only WHERE can join. */
function isPlainJoin(source: Source): boolean {
  if (source.kind !== "join" || source.type !== "cross") return false;
  return source.left.kind !== "join" || isPlainJoin(source.left);
}
