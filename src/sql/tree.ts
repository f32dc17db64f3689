/** What the grammar matched → syntax tree: one action for each rule of grammar.ts. */
import type * as ohm from "ohm-js";
import { notSupported, SqlError } from "../errors.ts";
import type {
  AlterAction,
  ColumnDefinition,
  CreateTable,
  Expression,
  Frame,
  FrameBound,
  FunctionCall,
  Join,
  LatestOn,
  Limit,
  Name,
  OrderItem,
  Query,
  SampleBy,
  Select,
  SelectItem,
  SetOperation,
  Source,
  Statement,
  TypeName,
  Window,
} from "./ast.ts";
import { buildExpression, CHAIN_MAX, type FlatItem, LEVEL, tooComplex } from "./expressions.ts";
import { grammar } from "./grammar.ts";
import type { Token } from "./lexer.ts";
import type { Matched } from "./parser.ts";

type Node = ohm.Node;

/** Set while a tree is being built; lists of values build trees inside it. */
let matched: Matched;

/** The tree of a successful match. */
export function toTree(result: ohm.MatchResult, of: Matched): unknown {
  const outer = matched;
  matched = of;
  try {
    return semantics(result).tree();
  } finally {
    matched = outer;
  }
}

// --- From nodes to tokens ---

function tokenIndex(node: Node): number {
  return matched.map[node.source.startIdx];
}
function token(node: Node): Token {
  return matched.source.tokens[tokenIndex(node)];
}
function at(node: Node): number {
  return token(node).at;
}
/** The end of the last token of a node that is not empty. */
function endOf(node: Node): number {
  return matched.source.tokens[matched.map[node.source.endIdx] - 1].end;
}
function written(node: Node): string {
  return matched.source.text.slice(at(node), endOf(node));
}
function word(node: Node): string {
  return token(node).text.toLowerCase();
}
function optional<T>(node: Node): T | undefined {
  return node.numChildren === 0 ? undefined : node.child(0).tree();
}
function given(node: Node): boolean {
  return node.numChildren > 0;
}
function many<T>(node: Node): T[] {
  return node.children.map((child) => child.tree());
}
/** `first ("," rest)*` */
function list<T>(first: Node, rest: Node): T[] {
  return rest.numChildren === 0 ? [first.tree()] : [first.tree(), ...many<T>(rest)];
}
function name(node: Node): Name {
  const { text, at, kind } = token(node);
  return { text, at, quoted: kind !== "word" };
}
function wholeNumber(node: Node): number {
  const { text, at } = token(node);
  const value = Number(text.replaceAll("_", ""));
  if (!Number.isSafeInteger(value)) throw new SqlError(`Expected a whole number, found ${text}`, at);
  return value;
}

// --- Parts that several actions make ---

interface Prelude {
  declares: Select["declares"];
  with: Select["with"];
}
interface Clauses {
  where?: Expression;
  sampleBy?: SampleBy;
  latestOn?: LatestOn;
  groupBy?: Select["groupBy"];
  having?: Expression;
  windows: Select["windows"];
}
interface Tail {
  orderBy: OrderItem[];
  limit?: Limit;
}
interface Path {
  schema?: Name;
  name: Name;
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

/** A query that was read as the only source of a bare one, with nothing behind it: itself. */
function unwrapped(query: Query): { query: Query; nested: boolean } {
  if (query.kind !== "select" || !query.bare || query.from?.kind !== "subquery") return { query, nested: false };
  const { from } = query;
  const plain = from.alias === undefined && from.timestamp === undefined && query.where === undefined &&
    query.sampleBy === undefined &&
    query.latestOn === undefined && query.groupBy === undefined && query.having === undefined &&
    query.windows.length === 0 &&
    query.orderBy.length === 0 && query.limit === undefined && query.with.length === 0 && query.declares.length === 0;
  return plain ? { query: from.query, nested: true } : { query, nested: false };
}

function completed(prelude: Prelude | undefined, operation: Query, tail: Tail): Query {
  const { query, nested } = unwrapped(operation);
  const nothingAround = prelude === undefined && tail.orderBy.length === 0 && tail.limit === undefined;
  if (nothingAround) return query;
  // What stands around a query in parentheses must not mix with its own clauses.
  const outer = nested && operation.kind === "select" ? operation : query;
  if (prelude !== undefined) Object.assign(outer, prelude);
  return Object.assign(outer, tail);
}

/** A statement takes no schema but the one there is. */
function onlyName(path: Path): Name {
  if (path.schema !== undefined && path.schema.text.toLowerCase() !== "public") {
    throw new SqlError(`Unknown schema ${path.schema.text}: tables are in public`, path.schema.at);
  }
  return path.name;
}

function bareName(path: Path): Name {
  if (path.schema !== undefined) {
    throw new SqlError("A schema cannot be given here: expected the table's name alone", path.schema.at);
  }
  return path.name;
}

function call(path: Name[], args: Expression[], more: Partial<FunctionCall> = {}): FunctionCall {
  const called: FunctionCall = {
    kind: "call",
    at: path[0].at,
    name: path.at(-1)!.text,
    args,
    distinct: false,
    ignoreNulls: false,
    ...more,
  };
  if (path.length > 1) called.schema = path.slice(0, -1).map((part) => part.text).join(".");
  return called;
}

/** OFFSET is given as the dialect's two bounds; that takes numbers that are known. */
function limitWithOffset(at: number, count: Expression, offset: Expression): Limit {
  if (count.kind !== "number" || offset.kind !== "number") {
    throw notSupported("OFFSET with anything but plain numbers", offset.at);
  }
  const [countValue, offsetValue] = [count, offset].map(({ text }) =>
    Number(text.replaceAll("_", "").replace(/l$/i, ""))
  );
  if (!Number.isSafeInteger(countValue + offsetValue)) {
    throw new SqlError("OFFSET and LIMIT take whole numbers", offset.at);
  }
  return { at, low: offset, high: { kind: "number", at: count.at, text: String(countValue + offsetValue) } };
}

const semantics = grammar.createSemantics();

semantics.addOperation<unknown>("tree", {
  // --- Queries ---
  queryStatement(query, _end): Statement {
    return { kind: "query", at: at(query), query: query.tree() };
  },
  withStatement_write(prelude, body, _end): Statement {
    const statement = body.tree() as Extract<Statement, { kind: "insert" | "update" }>;
    const { declares, with: ctes } = prelude.tree() as Prelude;
    if (declares.length > 0) throw notSupported("DECLARE before INSERT or UPDATE", declares[0].at);
    return { ...statement, at: at(prelude), with: ctes };
  },
  withStatement_query(query, _end): Statement {
    return { kind: "query", at: at(query), query: query.tree() };
  },
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
    return { declares: declares.tree(), with: optional(ctes) ?? [] };
  },
  prelude_with(ctes): Prelude {
    return { declares: [], with: ctes.tree() };
  },
  declare(_declare, first, _commas, rest, _trailing) {
    return list(first, rest);
  },
  declaration(overridable, variable, _assign, value): Select["declares"][number] {
    return { name: token(variable).text, at: at(variable), value: value.tree(), overridable: given(overridable) };
  },
  with(_with, first, _commas, rest) {
    return list(first, rest);
  },
  cte(cteName, _as, _open, query, _close): Select["with"][number] {
    return { name: name(cteName), query: query.tree() };
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
    return { orderBy: optional(orderBy) ?? [], limit: optional(limit) };
  },
  select(select, distinct, items, from, clauses): Select {
    return {
      kind: "select",
      at: at(select),
      declares: [],
      with: [],
      distinct: given(distinct),
      distinctAt: given(distinct) ? at(distinct) : at(select),
      items: items.tree(),
      bare: false,
      from: optional(from),
      orderBy: [],
      ...clauses.tree() as Clauses,
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
    if (given(alias)) item.alias = alias.child(0).tree();
    return item;
  },
  alias(_as, aliasNode) {
    return name(aliasNode);
  },
  from(_from, source) {
    return source.tree();
  },
  bare(source, clauses): Select {
    return bareSelect(at(source), source.tree(), clauses.tree());
  },
  clauses(firstLatestBy, where, timeClause, groupBy, having, windows): Clauses {
    const latestBy = optional<LatestOn>(firstLatestBy);
    const time = optional<{ sampleBy: SampleBy } | { latestOn: LatestOn }>(timeClause);
    const clauses: Clauses = { windows: optional(windows) ?? [] };
    if (given(where)) clauses.where = where.child(0).tree();
    if (given(groupBy)) clauses.groupBy = groupBy.child(0).tree();
    if (given(having)) clauses.having = having.child(0).tree();
    if (latestBy !== undefined) {
      if (time !== undefined) throw new SqlError("LATEST BY cannot stand beside SAMPLE BY or LATEST", at(timeClause));
      clauses.latestOn = latestBy;
    } else if (time !== undefined) {
      const isSample = word(timeClause) === "sample";
      if (isSample) clauses.sampleBy = time as unknown as SampleBy;
      else clauses.latestOn = time as unknown as LatestOn;
    }
    if (clauses.sampleBy !== undefined && clauses.groupBy !== undefined) {
      throw new SqlError(
        "GROUP BY cannot stand beside SAMPLE BY: plain columns are its keys",
        clauses.groupBy.items[0].at,
      );
    }
    return clauses;
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
    return limitWithOffset(at(limit), count.tree(), offset.tree());
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
    throw new SqlError("SAMPLE BY takes a positive interval", endOf(number));
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
  fillItem_value(expr) {
    return { kind: "value", at: at(expr), value: expr.tree() };
  },
  align_calendar(align, _to, _calendar, zone, offset): SampleBy["align"] {
    return { at: at(align), to: "calendar", timeZone: optional(zone), offset: optional(offset) };
  },
  align_first(align, _to, _first, _observation): SampleBy["align"] {
    return { at: at(align), to: "first observation" };
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
    let source: Source = first.tree();
    joins.children.forEach((join, index) => {
      if (index >= CHAIN_MAX) throw tooComplex("too many joins", at(join), CHAIN_MAX);
      source = { ...join.tree() as Omit<Join, "left">, left: source };
    });
    return source;
  },
  joined_comma(comma, source): Omit<Join, "left"> {
    return { kind: "join", at: at(comma), type: "cross", right: source.tree(), end: endOf(source) };
  },
  joined_join(joinType, source, options): Omit<Join, "left"> {
    const join: Omit<Join, "left"> = {
      kind: "join",
      at: at(joinType),
      type: joinType.tree(),
      right: source.tree(),
      end: endOf(source),
    };
    for (const option of options.children) {
      const part = option.tree() as Partial<Join>;
      if ((part.on && join.on) || (part.tolerance && join.tolerance)) {
        throw new SqlError("The join has this clause already", at(option));
      }
      if (part.on && join.type === "cross") throw new SqlError("CROSS JOIN takes no ON", at(option));
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
  joinOption_columns(_on, open, first, _commas, rest, _close) {
    const items: Expression[] = [first, ...rest.children].map((column) => ({
      kind: "column",
      at: at(column),
      path: [name(column)],
    }));
    return { on: { kind: "list", at: at(open), items } };
  },
  joinOption_expr(_on, expr) {
    return { on: expr.tree() };
  },
  joinOption_tolerance(_tolerance, minus, duration) {
    if (given(minus)) throw new SqlError("TOLERANCE cannot be negative", at(duration));
    return { tolerance: { text: token(duration).text, at: at(duration) } };
  },
  joinOption_noTolerance(tolerance) {
    throw new SqlError("TOLERANCE needs a duration behind it, such as 10s", at(tolerance));
  },
  primarySource(item, before, alias, behind): Source {
    const source = item.tree() as Source;
    if (source.kind === "join") return source;
    if (given(alias)) source.alias = alias.child(0).tree();
    const designated = [before, behind].filter(given);
    if (designated.length > 1) throw new SqlError("The designated timestamp is named twice", at(behind));
    if (designated.length === 1) {
      if (source.kind === "show") throw notSupported("A designated timestamp of SHOW", at(designated[0]));
      source.timestamp = designated[0].child(0).tree();
    }
    return source;
  },
  sourceAlias_as(_as, alias) {
    return name(alias);
  },
  sourceAlias_plain(alias) {
    return name(alias);
  },
  designated(_timestamp, _open, column, _close) {
    return name(column);
  },
  sourceItem_show(open, show, _close): Source {
    return { kind: "show", at: at(open), statement: show.tree() };
  },
  sourceItem_query(open, query, _close): Source {
    return { kind: "subquery", at: at(open), query: query.tree() };
  },
  sourceItem_function(path, _open, args, _close): Source {
    return { kind: "function", at: at(path), call: call(path.tree(), [], optional(args)) };
  },
  sourceItem_table(table): Source {
    return { kind: "table", at: at(table), ...table.tree() as Path };
  },
  sourceItem_variable(variable): Source {
    throw notSupported("A variable in the place of a table", at(variable));
  },
  tableName(first, _dot, second): Path {
    return given(second) ? { schema: name(first), name: name(second) } : { name: name(first) };
  },

  // --- Expressions ---
  expr(first, infixes, units): Expression {
    const flat = first.tree() as FlatItem[];
    if (infixes.numChildren > 0) {
      const operators = infixes.children;
      const operands = units.children;
      for (let index = 0; index < operators.length; index++) {
        flat.push(operators[index].tree());
        for (const item of operands[index].tree() as FlatItem[]) flat.push(item);
      }
    }
    return buildExpression(flat);
  },
  unit(prefixes, operand, postfixes): FlatItem[] {
    const flat: FlatItem[] = [];
    for (const prefix of prefixes.children) flat.push({ part: "prefix", operator: word(prefix), at: at(prefix) });
    flat.push({ part: "operand", expression: operand.tree() });
    for (const postfix of postfixes.children) flat.push(postfix.tree());
    return flat;
  },
  infix_symbol(symbol): FlatItem {
    const { text, at } = token(symbol);
    return { part: "infix", operator: text === "<>" ? "!=" : text, at };
  },
  infix_word(wordNode): FlatItem {
    return { part: "infix", operator: word(wordNode), at: at(wordNode) };
  },
  infix_not(not, wordNode): FlatItem {
    const operator = word(wordNode);
    return given(not)
      ? { part: "infix", operator: `not ${operator}`, at: at(not) }
      : { part: "infix", operator, at: at(wordNode) };
  },
  postfix_cast(colons, type): FlatItem {
    const position = at(colons);
    const target: TypeName = type.tree();
    return postfix(
      LEVEL.postfix,
      position,
      (operand) => ({ kind: "cast", at: position, operand, type: target, style: "::" }),
    );
  },
  postfix_is(is, not, value): FlatItem {
    const position = at(is);
    const negated = given(not);
    const what = word(value);
    const valueAt = at(value);
    if (what === "null") {
      return postfix(LEVEL.comparison, position, (operand) => ({ kind: "isNull", at: position, operand, negated }));
    }
    return postfix(LEVEL.comparison, position, (left) => ({
      kind: "binary",
      at: position,
      operator: negated ? "!=" : "=",
      left,
      right: { kind: "boolean", at: valueAt, value: what === "true" },
    }));
  },
  postfix_in(not, inNode, itemsNode): FlatItem {
    const position = given(not) ? at(not) : at(inNode);
    const { items } = matched.source.items(tokenIndex(itemsNode));
    const negated = given(not);
    return postfix(
      LEVEL.comparison,
      position,
      (operand) => ({ kind: "in", at: position, operand, items, bare: false, negated }),
    );
  },
  postfix_inQuery(not, inNode, _open, queryNode, _close): FlatItem {
    const position = given(not) ? at(not) : at(inNode);
    const query: Query = queryNode.tree();
    const negated = given(not);
    return postfix(
      LEVEL.comparison,
      position,
      (operand) => ({ kind: "inQuery", at: position, operand, query, negated }),
    );
  },
  postfix_index(open, first, _commas, rest, _close): FlatItem {
    const position = at(open);
    const subscripts = list<(Expression & { kind: "index" })["subscripts"][number]>(first, rest);
    return postfix(LEVEL.postfix, position, (operand) => ({ kind: "index", at: position, operand, subscripts }));
  },
  postfix_within(within, _open, first, _commas, rest, _close): FlatItem {
    const hashes = list<Expression>(first, rest);
    return postfix(LEVEL.comparison, at(within), (operand) => call([name(within)], [operand, ...hashes]));
  },
  subscript_slice(from, _colon, to) {
    return { from: optional(from), to: optional(to) };
  },
  subscript_index(index) {
    return { index: index.tree() };
  },
  operand(operand): Expression {
    return operand.tree();
  },
  operand_number(number): Expression {
    return { kind: "number", at: at(number), text: token(number).text };
  },
  operand_string(string): Expression {
    return { kind: "string", at: at(string), value: token(string).text };
  },
  operand_null(node): Expression {
    return { kind: "null", at: at(node) };
  },
  operand_true(node): Expression {
    return { kind: "boolean", at: at(node), value: true };
  },
  operand_false(node): Expression {
    return { kind: "boolean", at: at(node), value: false };
  },
  operand_parameter(parameter): Expression {
    return { kind: "parameter", at: at(parameter), index: Number(token(parameter).text) - 1 };
  },
  operand_variable(variable): Expression {
    return { kind: "variable", at: at(variable), name: token(variable).text };
  },
  operand_geohash(geohash): Expression {
    return { kind: "geohash", at: at(geohash), text: token(geohash).text };
  },
  operand_array(array): Expression {
    return { kind: "array", at: at(array), items: matched.source.arrayItems(tokenIndex(array) + 1) };
  },
  operand_cast(cast, _open, expr, _as, type, _close): Expression {
    return { kind: "cast", at: at(cast), operand: expr.tree(), type: type.tree(), style: "cast" };
  },
  operand_extract(extract, _open, unit, _from, expr, _close): Expression {
    const unitText: Expression = { kind: "string", at: at(unit), value: token(unit).text };
    return call([name(extract)], [unitText, expr.tree()]);
  },
  operand_exists(exists, _open, query, _close): Expression {
    return { kind: "exists", at: at(exists), query: query.tree() };
  },
  operand_typed(type, string): Expression {
    const operand: Expression = { kind: "string", at: at(string), value: token(string).text };
    const typeName: TypeName = { at: at(type), name: word(type), parameters: [], dimensions: 0 };
    return { kind: "cast", at: at(type), operand, type: typeName, style: "cast" };
  },
  operand_call(path, _open, args, _close, nulls, over): Expression {
    const called = call(path.tree(), [], optional(args));
    if (given(nulls)) called.ignoreNulls = word(nulls) === "ignore";
    if (given(over)) called.over = over.child(0).tree();
    else if (given(nulls)) throw new SqlError("IGNORE NULLS needs an OVER behind it", at(nulls));
    return called;
  },
  operand_column(path): Expression {
    return { kind: "column", at: at(path), path: path.tree() };
  },
  operand_query(open, query, _close): Expression {
    return { kind: "query", at: at(open), query: query.tree() };
  },
  operand_nested(_open, expr, _close): Expression {
    return expr.tree();
  },
  path(first, _dots, rest): Name[] {
    return rest.numChildren === 0 ? [name(first)] : [name(first), ...rest.children.map(name)];
  },
  args_star(star): Partial<FunctionCall> {
    return { args: [{ kind: "star", at: at(star) }] };
  },
  args_query(query): Partial<FunctionCall> {
    return { args: [{ kind: "query", at: at(query), query: query.tree() }] };
  },
  args_list(distinct, first, _commas, rest): Partial<FunctionCall> {
    return { args: list(first, rest), distinct: given(distinct) };
  },
  over_spec(_over, spec) {
    return spec.tree();
  },
  over_reference(_over, windowName) {
    return { reference: name(windowName) };
  },
  windowSpec(open, base, partitionBy, orderBy, frame, _close): Window {
    const window: Window = { at: at(open), partitionBy: optional(partitionBy) ?? [], orderBy: optional(orderBy) ?? [] };
    if (given(base)) window.base = name(base);
    if (given(frame)) window.frame = frame.child(0).tree();
    return window;
  },
  partitionBy(_partition, _by, first, _commas, rest) {
    return list<Expression>(first, rest);
  },
  frame_cumulative(node): Frame {
    const position = at(node);
    return {
      at: position,
      unit: "cumulative",
      start: { kind: "unbounded preceding", at: position },
      end: { kind: "current row", at: position },
    };
  },
  frame_between(unit, _between, start, _and, end, exclude): Frame {
    return {
      at: at(unit),
      unit: word(unit) as Frame["unit"],
      start: start.tree(),
      end: end.tree(),
      exclude: optional(exclude),
    };
  },
  frame_short(unit, start, exclude): Frame {
    const end: FrameBound = { kind: "current row", at: at(start) };
    return { at: at(unit), unit: word(unit) as Frame["unit"], start: start.tree(), end, exclude: optional(exclude) };
  },
  bound_unbounded(unbounded, direction): FrameBound {
    return { kind: word(direction) === "preceding" ? "unbounded preceding" : "unbounded following", at: at(unbounded) };
  },
  bound_current(current, _row): FrameBound {
    return { kind: "current row", at: at(current) };
  },
  bound_offset(unit, timeUnit, direction): FrameBound {
    const kind = word(direction) as "preceding" | "following";
    const bound: FrameBound = { kind, at: at(unit), offset: buildExpression(unit.tree()) };
    if (given(timeUnit)) bound.unit = name(timeUnit);
    return bound;
  },
  exclude_two(_exclude, first, second) {
    return `${word(first)} ${word(second)}`;
  },
  exclude_one(_exclude, what) {
    return word(what);
  },
  case(caseNode, operand, branches, otherwise, _end): Expression {
    const expression: Expression = { kind: "case", at: at(caseNode), branches: many(branches) };
    if (given(operand)) expression.operand = operand.child(0).tree();
    if (given(otherwise)) expression.otherwise = otherwise.child(0).tree();
    return expression;
  },
  branch(_when, when, _then, then) {
    return { when: when.tree(), then: then.tree() };
  },
  otherwise(_else, expr) {
    return expr.tree();
  },
  type(words, parameters, dimensions): TypeName {
    return {
      at: at(words),
      name: words.tree(),
      parameters: optional(parameters) ?? [],
      dimensions: dimensions.numChildren,
    };
  },
  typeWords_double(_double, _precision) {
    return "double precision";
  },
  typeWords_varying(_character, _varying) {
    return "character varying";
  },
  typeWords_zone(_timestamp, withNode, _time, _zone) {
    return `timestamp ${word(withNode)} time zone`;
  },
  typeWords_schema(_schema, _dot, typeName) {
    return word(typeName);
  },
  typeWords_name(typeName) {
    return word(typeName);
  },
  typeParameters(_open, first, _commas, rest, _close) {
    return [first, ...rest.children].map((parameter) => token(parameter).text);
  },

  // --- CREATE TABLE ---
  createTable(create, _batching, _table, ifNotExists, table, body, extras, options, _end): CreateTable {
    const statement: CreateTable = {
      kind: "createTable",
      at: at(create),
      name: onlyName(table.tree()),
      ifNotExists: given(ifNotExists),
      columns: [],
      casts: [],
      indexes: [],
      settings: [],
    };
    const add = body.tree() as (statement: CreateTable) => void;
    add(statement);
    for (const extra of extras.children) {
      const addExtra = extra.tree() as (statement: CreateTable) => void;
      addExtra(statement);
    }
    const seen = new Set<string>();
    for (const option of options.children) {
      // BYPASS WAL and WAL are one option.
      const kind = word(option) === "bypass" ? "wal" : word(option);
      if (seen.has(kind)) throw new SqlError(`The option ${kind.toUpperCase()} is given already`, at(option));
      seen.add(kind);
      Object.assign(statement, option.tree());
    }
    return statement;
  },
  createBody_like(_open, _like, table, _close) {
    const like = onlyName(table.tree());
    return (statement: CreateTable) => void (statement.like = like);
  },
  createBody_columns(_open, first, _commas, rest, _close) {
    const items = list<ColumnDefinition | CreateTable["indexes"][number]>(first, rest);
    return (statement: CreateTable) => {
      for (const item of items) {
        if ("type" in item) statement.columns.push(item);
        else statement.indexes.push(item);
      }
    };
  },
  createBody_query(_as, _open, query, _close) {
    const tree: Query = query.tree();
    return (statement: CreateTable) => void (statement.query = tree);
  },
  createBody_openQuery(_as, query) {
    const tree: Query = query.tree();
    return (statement: CreateTable) => void (statement.query = tree);
  },
  createItem(item) {
    return item.tree();
  },
  indexItem(_index, _open, column, _capacityWord, capacity, _close): CreateTable["indexes"][number] {
    return given(capacity)
      ? { column: name(column), capacity: wholeNumber(capacity.child(0)) }
      : { column: name(column) };
  },
  columnDefinition(columnName, type, options): ColumnDefinition {
    return Object.assign({ name: name(columnName), type: type.tree() }, ...many<object>(options));
  },
  columnOption_capacity(_capacity, number) {
    return { symbolCapacity: wholeNumber(number) };
  },
  columnOption_cache(_cache) {
    return { symbolCached: true };
  },
  columnOption_nocache(_nocache) {
    return { symbolCached: false };
  },
  columnOption_index(_index, _capacity, number) {
    return given(number) ? { indexed: true, indexCapacity: wholeNumber(number.child(0)) } : { indexed: true };
  },
  columnOption_notNull(_not, _null) {
    return {};
  },
  columnOption_null(_null) {
    return {};
  },
  createExtra_cast(_comma, _cast, _open, column, _as, type, options, _close) {
    const cast: CreateTable["casts"][number] = Object.assign(
      { column: name(column), type: type.tree() },
      ...many<object>(options),
    );
    return (statement: CreateTable) => void statement.casts.push(cast);
  },
  createExtra_index(_comma, index) {
    const item = index.tree() as CreateTable["indexes"][number];
    return (statement: CreateTable) => void statement.indexes.push(item);
  },
  createOption_timestamp(_timestamp, _open, column, _close): Partial<CreateTable> {
    return { timestamp: name(column) };
  },
  createOption_partition(_partition, _by, unit): Partial<CreateTable> {
    return { partitionBy: { at: at(unit), unit: word(unit) } };
  },
  createOption_ttl(_ttl, ttl): Partial<CreateTable> {
    return { ttl: { at: at(ttl), text: ttl.tree() } };
  },
  createOption_bypass(_bypass, _wal): Partial<CreateTable> {
    return { wal: false };
  },
  createOption_wal(_wal): Partial<CreateTable> {
    return { wal: true };
  },
  createOption_with(_with, first, _commas, rest): Partial<CreateTable> {
    return { settings: list(first, rest) };
  },
  createOption_dedup(_dedup, keys): Partial<CreateTable> {
    return { dedupKeys: keys.tree() };
  },
  createOption_volume(inNode, _volume, _name) {
    throw notSupported("IN VOLUME", at(inNode));
  },
  createOption_owned(owned, _by, _name) {
    throw notSupported("OWNED BY", at(owned));
  },
  ttl_unit(number, unit) {
    return `${token(number).text} ${token(unit).text}`;
  },
  ttl_text(number) {
    return token(number).text;
  },
  setting(settingName, _equals, minus, value): CreateTable["settings"][number] {
    return { name: token(settingName).text, at: at(settingName), value: (given(minus) ? "-" : "") + token(value).text };
  },
  keys(_upsert, _keys, _open, first, _commas, rest, _close) {
    return [first, ...rest.children].map(name);
  },

  // --- ALTER TABLE ---
  alterTable(alter, _table, table, alteration, _end): Statement {
    return { kind: "alterTable", at: at(alter), table: onlyName(table.tree()), action: alteration.tree() };
  },
  alteration(alteration): AlterAction {
    return alteration.tree();
  },
  alteration_add(add, _column, ifNotExists, first, _commas, rest): AlterAction {
    return { kind: "addColumn", at: at(add), ifNotExists: given(ifNotExists), columns: list(first, rest) };
  },
  alteration_drop(drop, _column, first, _commas, rest): AlterAction {
    return { kind: "dropColumn", at: at(drop), columns: [first, ...rest.children].map(name) };
  },
  alteration_rename(rename, _column, first, _commas, rest): AlterAction {
    return { kind: "renameColumn", at: at(rename), renames: list(first, rest) };
  },
  alteration_type(alter, _column, column, _type, type, options): AlterAction {
    const target: TypeName = type.tree();
    const definition: ColumnDefinition = Object.assign({ name: name(column), type: target }, ...many<object>(options));
    return { kind: "columnType", at: at(alter), column: name(column), type: target, definition };
  },
  otherAlteration(change): AlterAction {
    return { kind: "other", at: at(change), text: written(change) };
  },
  renaming(from, _to, to) {
    return { from: name(from), to: name(to) };
  },

  // --- Rows ---
  insert(body, _end): Statement {
    return body.tree();
  },
  batching_atomic(_atomic) {
    return undefined;
  },
  batching_batch(_batch, rows, _lagWord, _lag) {
    if (wholeNumber(rows) <= 0) throw new SqlError("BATCH takes a positive number of rows", at(rows));
    return undefined;
  },
  insertBody(insert, batching, _into, table, columns, source): Statement {
    optional(batching);
    return {
      kind: "insert",
      at: at(insert),
      table: onlyName(table.tree()),
      columns: optional(columns),
      with: [],
      ...source.tree() as { rows?: Expression[][]; rowsAt: number[]; query?: Query },
    };
  },
  columnNames(_open, first, _commas, rest, _close) {
    return [first, ...rest.children].map(name);
  },
  insertSource_rows(_values, rows, _commas, _more) {
    return matched.source.rows(tokenIndex(rows));
  },
  insertSource_query(query) {
    return { query: query.tree() as Query, rowsAt: [] };
  },
  update(body, _end): Statement {
    return body.tree();
  },
  updateBody(update, table, alias, _set, first, _commas, rest, from, where): Statement {
    return {
      kind: "update",
      at: at(update),
      table: onlyName(table.tree()),
      alias: optional(alias),
      sets: list(first, rest),
      from: optional(from),
      where: optional(where),
      with: [],
    };
  },
  assignment(_table, _dot, column, _equals, value) {
    return { column: name(column), value: value.tree() as Expression };
  },
  delete(deleteNode, _from, table, where, _end): Statement {
    return { kind: "delete", at: at(deleteNode), table: onlyName(table.tree()), where: optional(where) };
  },
  dropTable_all(drop, _all, _tables, _end): Statement {
    return { kind: "dropTable", at: at(drop), ifExists: false, all: true };
  },
  dropTable_one(drop, _table, ifExists, table, _end): Statement {
    return { kind: "dropTable", at: at(drop), name: bareName(table.tree()), ifExists: given(ifExists), all: false };
  },
  truncate(truncate, _table, ifExists, first, _commas, rest, keepMaps, _end): Statement {
    const tables = list<Path>(first, rest).map(onlyName);
    return { kind: "truncate", at: at(truncate), tables, ifExists: given(ifExists), keepSymbols: given(keepMaps) };
  },
  rename(rename, _table, from, _to, to, _end): Statement {
    return { kind: "rename", at: at(rename), from: onlyName(from.tree()), to: onlyName(to.tree()) };
  },

  // --- The session and the server ---
  showStatement(show, _end): Statement {
    return show.tree();
  },
  show_from(show, what, _from, table): Statement {
    return { kind: "show", at: at(show), what: word(what), whatAt: at(what), table: onlyName(table.tree()) };
  },
  show_create(show, create, what, table): Statement {
    return {
      kind: "show",
      at: at(show),
      what: `create ${word(what)}`,
      whatAt: at(create),
      table: onlyName(table.tree()),
    };
  },
  show_words(show, first, rest): Statement {
    return { kind: "show", at: at(show), what: [first, ...rest.children].map(word).join(" "), whatAt: at(first) };
  },
  set(first, rest): Statement {
    const last = rest.numChildren > 0 ? rest.child(rest.numChildren - 1) : first;
    return { kind: "set", at: at(first), text: matched.source.text.slice(at(first), endOf(last)) };
  },
  transaction_word(first, _work, _modes, _end): Statement {
    const action = word(first);
    const actions = {
      begin: "begin",
      commit: "commit",
      end: "commit",
      rollback: "rollback",
      abort: "rollback",
    } as const;
    return { kind: "transaction", at: at(first), action: actions[action as keyof typeof actions] };
  },
  transaction_start(start, _transaction, _modes, _end): Statement {
    return { kind: "transaction", at: at(start), action: "begin" };
  },
  checkpoint(checkpoint, action, _end): Statement {
    return { kind: "checkpoint", at: at(checkpoint), action: word(action) as "create" | "release" };
  },
});

function setOperation(first: Node, operators: Node, terms: Node): Query {
  if (operators.numChildren === 0) return first.tree();
  let left = unwrapped(first.tree() as Query).query;
  operators.children.forEach((operator, index) => {
    if (index >= CHAIN_MAX) throw tooComplex("too many set operations", at(operator), CHAIN_MAX);
    const right = unwrapped(terms.child(index).tree() as Query).query;
    left = {
      kind: "set",
      at: at(operator),
      declares: [],
      with: [],
      operator: operator.tree() as SetOperation["operator"],
      left,
      right,
      orderBy: [],
    };
  });
  return left;
}

function postfix(level: number, at: number, apply: (operand: Expression) => Expression): FlatItem {
  return { part: "postfix", level, at, apply };
}
