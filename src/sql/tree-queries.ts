/** Actions for queries: select, set operations, sources, time-series clauses. */
import type * as ohm from "ohm-js";
import { notSupported, SqlError } from "../errors.ts";
import type {
  CommonTable,
  Expression,
  Horizon,
  HorizonOffset,
  Join,
  LatestOn,
  Limit,
  Name,
  OrderItem,
  Pivot,
  PivotColumn,
  Query,
  SampleBy,
  Select,
  SelectItem,
  SetOperation,
  Source,
  SourceNames,
  TextRange,
} from "./ast.ts";
import { tooComplex } from "./effort.ts";
import { CHAIN_MAX } from "./expressions.ts";
import { firstSource } from "./first-source.ts";
import { CLASS_CHARACTERS } from "./token-classes.ts";
import {
  at,
  call,
  endOf,
  given,
  lastAt,
  list,
  matched,
  name,
  newName,
  nextAt,
  type Node,
  optional,
  type Path,
  token,
  tokenIndex,
  word,
} from "./tree-nodes.ts";

export interface Prelude {
  declares: Select["declares"];
  with: Select["with"];
  prelude?: TextRange;
}
interface Clauses {
  where?: Expression;
  whereAt?: number;
  sampleBy?: SampleBy;
  latestOn?: LatestOn;
  groupBy?: Select["groupBy"];
  having?: Expression;
  havingAt?: number;
  windows: Select["windows"];
  pivot?: Pivot;
}
/** FROM, with the LATEST ON between its first source and the joins. */
interface Queried {
  from: Source;
  latestOn?: LatestOn;
}
interface Tail {
  orderBy: OrderItem[];
  orderByAt?: number;
  limit?: Limit;
}

function bareSelect(at: number, from: Source, clauses: Clauses): Select {
  const items: SelectItem[] = [{ at, expression: { kind: "star", at } }];
  return {
    kind: "select",
    at,
    declares: [],
    with: [],
    distinct: false,
    distinctAt: at,
    items,
    bare: true,
    from,
    orderBy: [],
    ...clauses,
  };
}

/** The clauses with the LATEST ON or LATEST BY that is before WHERE or the joins. */
function withLatest(clauses: Clauses, latestOn: LatestOn | undefined): Clauses {
  if (latestOn === undefined) return clauses;
  if (clauses.latestOn !== undefined) throw new SqlError("LATEST ON is given twice", clauses.latestOn.at);
  if (latestOn.timestamp !== undefined && clauses.where !== undefined) {
    const message = "WHERE cannot follow LATEST ON: put LATEST ON behind WHERE, or in a sub-query";
    throw new SqlError(message, clauses.whereAt!);
  }
  return { ...clauses, latestOn };
}

function joined(first: Node, joins: Node): Source {
  let source: Source = first.tree();
  joins.children.forEach((join, index) => {
    if (index >= CHAIN_MAX) throw tooComplex("too many joins", at(join), CHAIN_MAX);
    source = { ...join.tree() as Omit<Join, "left">, left: source };
  });
  return source;
}

/** A bare source without any clause, as in `(trades)` or `(a JOIN b ON …)`. Undefined if the query is another one. */
function bareSourceOf(query: Query): Source | undefined {
  if (query.kind !== "select" || !query.bare) return undefined;
  const plain = query.where === undefined && query.sampleBy === undefined && query.latestOn === undefined &&
    query.groupBy === undefined && query.having === undefined && query.windows.length === 0 &&
    query.pivot === undefined && query.orderBy.length === 0 && query.limit === undefined &&
    query.with.length === 0 && query.declares.length === 0;
  return plain ? query.from : undefined;
}

/** Unwraps a query that was parsed as the only source of a bare query without further clauses. */
function unwrapped(query: Query): { query: Query; nested: boolean } {
  const from = bareSourceOf(query);
  const isPlain = from?.kind === "subquery" && from.alias === undefined && from.timestamp === undefined;
  return isPlain ? { query: from.query, nested: true } : { query, nested: false };
}

/** The query with the names of DECLARE and WITH in scope, around its own. */
function within(query: Query, prelude: Prelude): Query {
  if (query.prelude === undefined) return Object.assign(query, prelude);
  return { ...bareSelect(query.at, { kind: "subquery", at: query.at, query }, { windows: [] }), ...prelude };
}

function completed(prelude: Prelude | undefined, operation: Query, tail: Tail): Query {
  const { query, nested } = unwrapped(operation);
  const nothingAround = prelude === undefined && tail.orderBy.length === 0 && tail.limit === undefined;
  if (nothingAround) return query;
  // Clauses around a query in parentheses must not be merged with its own.
  const outer = nested && operation.kind === "select" ? operation : query;
  if (prelude !== undefined) Object.assign(outer, prelude);
  return Object.assign(outer, tail);
}

export const queryActions: ohm.ActionDict<unknown> = {
  // --- Queries ---
  expressionOnly(expr, _end): Expression {
    return expr.tree();
  },
  query(prelude, operation, tail): Query {
    return completed(optional(prelude), operation.tree(), tail.tree());
  },
  subquery_prelude(prelude, operation, tail): Query {
    return completed(prelude.tree(), operation.tree(), tail.tree());
  },
  subquery_plain(operation, tail): Query {
    return completed(undefined, operation.tree(), tail.tree());
  },
  prelude_declare(declares, ctes): Prelude {
    const prelude = { from: at(declares), to: endOf(given(ctes) ? ctes : declares) };
    return { declares: declares.tree(), with: optional(ctes) ?? [], prelude };
  },
  prelude_with(ctes): Prelude {
    return { declares: [], with: ctes.tree(), prelude: { from: at(ctes), to: endOf(ctes) } };
  },
  declare(_declare, first, _commas, rest, _trailing) {
    return list(first, rest);
  },
  declaration(overridable, variable, assign, value): Select["declares"][number] {
    return {
      name: token(variable).text,
      at: at(variable),
      assignAt: at(assign),
      value: value.tree(),
      overridable: given(overridable),
    };
  },
  declared_duration(duration): Expression {
    return { kind: "string", at: at(duration), value: token(duration).text };
  },
  declared_expr(expr) {
    return expr.tree();
  },
  with(_with, recursive, first, _commas, rest): CommonTable[] {
    return list<CommonTable>(first, rest).map((table) => ({ ...table, recursive: given(recursive) }));
  },
  cte(cteName, columns, _as, _open, query, close): CommonTable {
    return {
      name: newName(name(cteName)),
      columnNames: optional(columns),
      query: query.tree(),
      recursive: false,
      end: endOf(close),
    };
  },
  setOperation: setOperation,
  explicitOperation: setOperation,
  setOperator(operator, all) {
    const text = word(operator);
    return given(all) && word(all) === "all" ? `${text} all` : text;
  },
  term(term): Query {
    return term.tree();
  },
  explicitTerm_nested(open, query, _close): Query {
    const from: Source = { kind: "subquery", at: at(open), query: query.tree() };
    return bareSelect(at(open), from, { windows: [] });
  },
  tail(orderBy, limit): Tail {
    const tail: Tail = { orderBy: optional(orderBy) ?? [], limit: optional(limit) };
    return given(orderBy) ? { ...tail, orderByAt: at(orderBy) } : tail;
  },
  select(select, distinct, items, queried, clauses): Select {
    const end = endOf(items);
    if (!given(queried) && matched.source.text[end - 1] === ",") {
      throw new SqlError("Expected a column after the comma", end);
    }
    const { from, latestOn } = optional<Queried>(queried) ?? {};
    return {
      kind: "select",
      at: at(select),
      declares: [],
      with: [],
      distinct: given(distinct),
      distinctAt: given(distinct) ? at(distinct) : at(select),
      items: items.tree(),
      bare: false,
      from,
      orderBy: [],
      ...withLatest(clauses.tree(), latestOn),
    };
  },
  items(first, _commas, rest, _trailing) {
    return list<SelectItem>(first, rest);
  },
  item_star(star): SelectItem {
    return { at: at(star), expression: { kind: "star", at: at(star) } };
  },
  item_tableStar(table, _dot, _star): SelectItem {
    return { at: at(table), expression: { kind: "star", at: at(table), table: name(table) } };
  },
  item_expr(expr, alias): SelectItem {
    const item: SelectItem = { at: at(expr), expression: expr.tree() };
    if (given(alias)) {
      item.alias = alias.child(0).tree();
      const { source } = alias.child(0);
      // `name 'text'` would be a value of type `name`, which does not exist.
      if (item.expression.kind === "column" && source.contents === CLASS_CHARACTERS.string) {
        throw new SqlError(`a quoted value cannot have type ${item.expression.path.at(-1)!.text}`, item.at);
      }
    }
    return item;
  },
  alias(_as, aliasNode) {
    return newName(name(aliasNode));
  },
  from(_from, source) {
    return source.tree();
  },
  queriedFrom(_from, queried) {
    return queried.tree();
  },
  bare(queried, clauses): Select {
    const { from, latestOn } = queried.tree() as Queried;
    return bareSelect(at(queried), from, withLatest(clauses.tree(), latestOn));
  },
  clauses(firstLatestBy, where, latest, sampleBy, groupBy, having, windows, pivot): Clauses {
    const clauses: Clauses = { windows: optional(windows) ?? [] };
    if (given(where)) Object.assign(clauses, { where: where.child(0).tree(), whereAt: at(where) });
    if (given(latest)) clauses.latestOn = latest.child(0).tree();
    if (given(sampleBy)) clauses.sampleBy = sampleBy.child(0).tree();
    if (given(groupBy)) clauses.groupBy = groupBy.child(0).tree();
    if (given(pivot)) clauses.pivot = pivot.child(0).tree();
    if (given(having)) Object.assign(clauses, { having: having.child(0).tree(), havingAt: at(having) });
    if (clauses.sampleBy !== undefined && clauses.groupBy !== undefined) {
      throw new SqlError(
        "GROUP BY cannot be combined with SAMPLE BY: plain columns are its keys",
        clauses.groupBy.items[0]!.at,
      );
    }
    return withLatest(clauses, optional(firstLatestBy));
  },
  where(_where, expr) {
    return expr.tree();
  },
  groupBy(group, _by, first, _commas, rest) {
    return { at: at(group), items: list<Expression>(first, rest) };
  },
  having(_having, expr) {
    return expr.tree();
  },
  windows(_window, first, _commas, rest) {
    return list(first, rest);
  },
  namedWindow(windowName, _as, spec): Select["windows"][number] {
    return { name: name(windowName), window: spec.tree() };
  },
  pivot(pivot, _open, first, _commas, rest, _for, columns, groupBy, _close, alias): Pivot {
    return {
      at: at(pivot),
      aggregates: list<SelectItem>(first, rest),
      columns: columns.children.map((column) => column.tree() as PivotColumn),
      groupBy: optional(groupBy) ?? [],
      alias: optional(alias),
    };
  },
  pivotName_as(_as, alias) {
    return name(alias);
  },
  pivotName_plain(alias) {
    return name(alias);
  },
  pivotItem: aliased,
  pivotAlias_as(_as, alias) {
    return newName(name(alias));
  },
  pivotAlias_plain(alias) {
    return newName(name(alias));
  },
  pivotColumn_values(target, _in, itemsNode): PivotColumn {
    const values = matched.source.pivotValues(tokenIndex(itemsNode));
    return { expression: target.tree(), values, valuesAt: values[0]!.at };
  },
  pivotColumn_query(target, _in, _open, query, _close): PivotColumn {
    return { expression: target.tree(), values: query.tree(), valuesAt: at(query), valuesEnd: endOf(query) };
  },
  pivotGroup(_group, _by, first, _commas, rest) {
    return list<Expression>(first, rest);
  },
  pivotValue(expr, alias, _end): SelectItem {
    return aliased(expr, alias);
  },
  orderBy(_order, _by, first, _commas, rest) {
    return list<OrderItem>(first, rest);
  },
  orderItem(expr, direction, nulls): OrderItem {
    const item: OrderItem = {
      at: at(expr),
      expression: expr.tree(),
      descending: given(direction) && word(direction) === "desc",
    };
    if (given(nulls)) item.nulls = nulls.child(0).tree();
    return item;
  },
  nullsOrder(_nulls, place) {
    return word(place);
  },
  limit_high(limit, _comma, high): Limit {
    return { at: at(limit), low: high.tree() };
  },
  limit_offset(limit, count, _offset, offset): Limit {
    return { at: at(limit), low: count.tree(), offset: offset.tree() };
  },
  limit_all(limit, _all, offset): Limit {
    return { at: at(limit), offset: optional(offset) };
  },
  limit_fetch(offset, expr, _rows, fetch): Limit {
    const position = at(given(offset) ? offset : fetch);
    return { at: position, low: fetch.tree(), offset: optional(expr) ?? { kind: "number", at: position, text: "0" } };
  },
  fetch(fetch, _first, count, _rows, _only): Expression {
    return optional(count) ?? { kind: "number", at: at(fetch), text: "1" };
  },
  fetchCount(count): Expression {
    return count.tree();
  },
  limit_first(limit, offset, _rows, count): Limit {
    return { at: at(limit), low: optional(count), offset: offset.tree() };
  },
  limitCount(_limit, count): Expression {
    return count.tree();
  },
  limitOffset(_offset, offset): Expression {
    return offset.tree();
  },
  limit_both(limit, low, _comma, high): Limit {
    return { at: at(limit), low: low.tree(), high: high.tree() };
  },
  limit_low(limit, low, _comma): Limit {
    return { at: at(limit), low: low.tree() };
  },
  limit_none(_limit) {
    return undefined;
  },

  // --- SAMPLE BY and LATEST ---
  sampleBy(sample, _by, interval, from, to, fill, align): SampleBy {
    return {
      at: at(sample),
      interval: interval.tree(),
      from: optional(from),
      to: optional(to),
      fill: optional(fill),
      align: optional(align),
    };
  },
  interval_negative(_minus, number) {
    throw new SqlError("SAMPLE BY needs a positive interval", endOf(number));
  },
  interval_text(interval) {
    return { text: token(interval).text, at: at(interval) };
  },
  interval_expr(_lookahead, operand) {
    return operand.tree();
  },
  sampleFrom(_from, expr) {
    return expr.tree();
  },
  sampleTo(_to, expr) {
    return expr.tree();
  },
  fill(fill, _open, first, _commas, rest, _close): SampleBy["fill"] {
    return { at: at(fill), items: list(first, rest) };
  },
  fillItem_word(wordNode, _lookahead) {
    return { kind: word(wordNode), at: at(wordNode) };
  },
  fillItem_other(prev, _open, column, _close) {
    return { kind: "prev", at: at(prev), of: name(column) };
  },
  fillItem_value(expr) {
    return { kind: "value", at: at(expr), value: expr.tree() };
  },
  align_calendar(align, _to, _calendar, zone, offset): SampleBy["align"] {
    return { at: at(align), to: "calendar", timeZone: optional(zone), offset: optional(offset) };
  },
  align_first(align, _to, _first, observation): SampleBy["align"] {
    return { at: at(align), end: endOf(observation), to: "first observation" };
  },
  alignZone(_time, _zone, expr) {
    return expr.tree();
  },
  alignOffset(_with, _offset, expr) {
    return expr.tree();
  },
  latestOn(latest, _on, timestamp, _partition, _by, first, _commas, rest): LatestOn {
    return { at: at(latest), timestamp: timestamp.tree(), partitionBy: list(first, rest) };
  },
  latestBy(latest, _by, first, _commas, rest): LatestOn {
    return { at: at(latest), partitionBy: list(first, rest) };
  },

  // --- Sources ---
  source(first, joins): Source {
    return joined(first, joins);
  },
  queried(first, latest, joins): Queried {
    return { from: joined(first, joins), latestOn: optional(latest) };
  },
  latestJoined(latest, _join) {
    return latest.tree();
  },
  joined_comma(comma, source): Omit<Join, "left"> {
    return { kind: "join", at: at(comma), type: "cross", right: source.tree(), nextAt: nextAt(source) };
  },
  joined_join(joinType, source, options): Omit<Join, "left"> {
    const join: Omit<Join, "left"> = {
      kind: "join",
      at: at(joinType),
      type: joinType.tree(),
      right: source.tree(),
      nextAt: nextAt(source),
    };
    for (const option of options.children) {
      const part = option.tree() as Partial<Join>;
      if ((part.on && join.on) || (part.tolerance && join.tolerance)) {
        throw new SqlError("The join already has this clause", at(option));
      }
      if (part.on && join.type === "cross") throw new SqlError("CROSS JOIN does not allow ON", at(option));
      Object.assign(join, part);
    }
    return join;
  },
  joinType_plain(type, _join) {
    return word(type);
  },
  joinType_outer(type, _outer, _join) {
    return word(type);
  },
  joinType_bare(_join) {
    return "inner";
  },
  joined_window(joinNode, _join, source, on, _range, _between, start, _and, end, prevailing): Omit<Join, "left"> {
    const includesPrevailing = !given(prevailing) || prevailing.child(0).tree() === "include";
    return {
      kind: "join",
      at: at(joinNode),
      type: "window",
      right: source.tree(),
      ...optional<Partial<Join>>(on),
      window: { start: start.tree(), end: end.tree(), includesPrevailing },
    };
  },
  joined_horizon(joinNode, _join, source, on, offsets, _as, alias): Omit<Join, "left"> {
    return {
      kind: "join",
      at: at(joinNode),
      type: "horizon",
      right: source.tree(),
      ...optional<Partial<Join>>(on),
      horizon: { offsets: offsets.tree(), alias: name(alias) },
    };
  },
  joined_noWindow(_window, _join, source, on) {
    throw new SqlError("WINDOW JOIN needs RANGE BETWEEN … AND …", missingAt(given(on) ? on : source));
  },
  joined_noHorizon(_horizon, _join, source, on) {
    throw new SqlError("HORIZON JOIN needs RANGE FROM … TO … STEP …, or LIST (…)", missingAt(given(on) ? on : source));
  },
  prevailing(kind, _prevailing) {
    return word(kind);
  },
  horizon_range(_range, _from, from, _to, to, _step, step): Horizon["offsets"] {
    return { kind: "range", from: from.tree(), to: to.tree(), step: step.tree() };
  },
  horizon_list(_list, _open, first, _commas, rest, _close): Horizon["offsets"] {
    return { kind: "list", items: list(first, rest) };
  },
  horizonOffset(minus, duration): HorizonOffset {
    const { text } = token(duration);
    return given(minus) ? { text: `-${text}`, at: at(minus) } : { text, at: at(duration) };
  },
  joinOption_on(on) {
    return on.tree();
  },
  joinOn_columns(_on, open, first, _commas, rest, _close) {
    const items: Expression[] = [first, ...rest.children].map((column) => ({
      kind: "column",
      at: at(column),
      path: [name(column)],
    }));
    return { on: { kind: "list", at: at(open), items } };
  },
  joinOption_using(using, _open, first, _commas, rest, _close): Partial<Join> {
    const columns = [first, ...rest.children].map(name);
    const items = columns.map((column): Expression => ({ kind: "column", at: column.at, path: [column] }));
    return { on: { kind: "list", at: at(using), items }, merges: true };
  },
  joinOn_expr(_on, expr) {
    return { on: expr.tree() };
  },
  joinOption_tolerance(tolerance, minus, duration) {
    if (given(minus)) throw new SqlError("TOLERANCE cannot be negative", at(duration));
    return { tolerance: { text: token(duration).text, at: at(duration), wordAt: at(tolerance) } };
  },
  joinOption_toleranceOf(tolerance, _lookahead, operand) {
    return { tolerance: { value: operand.tree(), at: at(operand), wordAt: at(tolerance) } };
  },
  joinOption_noTolerance(tolerance) {
    throw new SqlError("TOLERANCE needs a duration after it, such as 10s", at(tolerance));
  },
  primarySource(item, before, alias, behind): Source {
    const source = item.tree() as Source;
    if (source.kind === "subquery" && !given(alias) && !given(before) && !given(behind)) {
      // The names of sources in parentheses are known outside of these, but joins that begin with a query are a sub-query.
      const inner = bareSourceOf(source.query);
      return inner === undefined || inner.kind === "join" && firstSource(inner).kind === "subquery" ? source : inner;
    }
    if (source.kind === "join") return source;
    if (given(alias)) Object.assign(source, alias.child(0).tree() as SourceNames);
    const designated = [before, behind].filter(given);
    if (designated.length > 1) throw new SqlError("The designated timestamp is given twice", at(behind));
    if (designated.length === 1) {
      if (source.kind === "show") throw notSupported("A designated timestamp of SHOW", at(designated[0]!));
      source.timestamp = designated[0]!.child(0).tree();
    }
    return source;
  },
  sourceAlias_as(_as, alias, columns): SourceNames {
    return sourceNames(alias, columns);
  },
  sourceAlias_plain(alias, columns): SourceNames {
    return sourceNames(alias, columns);
  },
  sourceColumns(_open, first, _commas, rest, _close): Name[] {
    return [first, ...rest.children].map(name);
  },
  designated(_timestamp, _open, column, _close) {
    return name(column);
  },
  sourceItem_show(open, show, _close): Source {
    return { kind: "show", at: at(open), statement: show.tree() };
  },
  sourceItem_query(lateral, open, query, _close): Source {
    if (given(lateral)) throw notSupported("LATERAL before a sub-query", at(lateral));
    return { kind: "subquery", at: at(open), query: query.tree() };
  },
  sourceItem_function(_lateral, path, _open, args, _close, ordinality): Source {
    const source: Source = { kind: "function", at: at(path), call: call(path.tree(), [], optional(args)) };
    return given(ordinality) ? { ...source, ordinality: { at: at(ordinality) } } : source;
  },
  sourceItem_table(table): Source {
    return { kind: "table", at: at(table), ...table.tree() as Path };
  },
  sourceItem_variable(variable): Source {
    return { kind: "variable", at: at(variable), name: token(variable).text };
  },
  tableName(first, _dot, second): Path {
    return given(second) ? { schema: name(first), name: name(second.child(0)) } : { name: name(first) };
  },
};

function aliased(expr: Node, alias: Node): SelectItem {
  return { at: at(expr), expression: expr.tree(), alias: optional(alias) };
}

/** The token after a node, or its last one at the end of the statement. */
function missingAt(node: Node): number {
  return nextAt(node) ?? lastAt(node);
}

function sourceNames(alias: Node, columns: Node): SourceNames {
  return { alias: name(alias), columnNames: optional(columns) };
}

function setOperation(first: Node, operators: Node, preludes: Node, terms: Node): Query {
  if (operators.numChildren === 0) return first.tree();
  let left = unwrapped(first.tree() as Query).query;
  const named: Prelude[] = [];
  operators.children.forEach((operator, index) => {
    if (index >= CHAIN_MAX) throw tooComplex("too many set operations", at(operator), CHAIN_MAX);
    const prelude: Prelude | undefined = optional(preludes.child(index));
    if (prelude !== undefined) named.unshift(prelude);
    const right = named.reduce(within, unwrapped(terms.child(index).tree() as Query).query);
    left = {
      kind: "set",
      at: at(operator),
      declares: [],
      with: [],
      operator: operator.tree() as SetOperation["operator"],
      left,
      right,
      rightAt: prelude?.prelude?.from ?? at(terms.child(index)),
      orderBy: [],
    };
  });
  return left;
}
