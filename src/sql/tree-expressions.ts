/** Actions for expressions, types and windows. */
import type * as ohm from "ohm-js";
import { notSupported, SqlError } from "../errors.ts";
import type { Expression, Frame, FrameBound, FunctionCall, Name, Query, TypeName, Window } from "./ast.ts";
import { buildExpression, type FlatItem, LEVEL } from "./expressions.ts";
import {
  at,
  call,
  given,
  list,
  many,
  matched,
  name,
  type Node,
  optional,
  spelling,
  token,
  tokenIndex,
  word,
} from "./tree-nodes.ts";

export const expressionActions: ohm.ActionDict<unknown> = {
  // --- Expressions ---
  expr: expression,
  unit: unitItems,
  // What PIVOT compares with its lists: an expression without IN.
  pivotTarget: expression,
  pivotInfix: symbolItem,
  pivotUnit: unitItems,
  infix_symbol(symbol): FlatItem {
    return symbolItem(symbol);
  },
  infix_qualified(_operator, _open, _schema, _dot, symbol, _close): FlatItem {
    return symbolItem(symbol);
  },
  // NULL is equal to NULL for = and != too.
  infix_distinct(is, not, _distinct, _from): FlatItem {
    return { part: "infix", operator: given(not) ? "=" : "!=", at: at(is) };
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
    const valueAt = at(value), spelled = spelling(token(value));
    if (what === "null") {
      return postfix(
        LEVEL.equality,
        position,
        (operand) => ({ kind: "isNull", at: position, operand, negated, ...spelled }),
      );
    }
    return postfix(LEVEL.equality, position, (left) => ({
      kind: "binary",
      at: position,
      operator: negated ? "!=" : "=",
      left,
      right: { kind: "boolean", at: valueAt, value: what === "true", ...spelled },
    }));
  },
  postfix_in(not, inNode, itemsNode): FlatItem {
    const position = given(not) ? at(not) : at(inNode);
    const { items } = matched.source.items(tokenIndex(itemsNode));
    const negated = given(not);
    return postfix(
      LEVEL.membership,
      position,
      (operand) => ({ kind: "in", at: position, operand, items, bare: false, negated }),
    );
  },
  postfix_inQuery(not, inNode, _open, queryNode, _close): FlatItem {
    const position = given(not) ? at(not) : at(inNode);
    const query: Query = queryNode.tree();
    const negated = given(not);
    return postfix(
      LEVEL.membership,
      position,
      (operand) => ({ kind: "inQuery", at: position, operand, query, negated }),
    );
  },
  postfix_between(not, between, _open, lowNode, _comma, highNode, _close): FlatItem {
    const position = given(not) ? at(not) : at(between), negated = given(not);
    const low: Expression = lowNode.tree(), high: Expression = highNode.tree();
    return postfix(
      LEVEL.membership,
      position,
      (operand) => ({ kind: "between", at: position, operand, low, high, negated }),
    );
  },
  postfix_index(open, first, _commas, rest, _close): FlatItem {
    const position = at(open);
    const subscripts = list<(Expression & { kind: "index" })["subscripts"][number]>(first, rest);
    return postfix(LEVEL.postfix, position, (operand) => ({ kind: "index", at: position, operand, subscripts }));
  },
  postfix_collate(collate, path): FlatItem {
    // PostgreSQL tools write the default collation, which is the order used anyway.
    const collation = (path.tree() as Name[]).at(-1)!.text.toLowerCase();
    if (collation !== "default" && collation !== "c") throw notSupported(`COLLATE ${collation}`, at(collate));
    return postfix(LEVEL.postfix, at(collate), (operand) => operand);
  },
  postfix_zone(atNode, _time, _zone, zoneNode): FlatItem {
    const position = at(atNode), zone = zoneNode.tree() as Expression;
    const path = [{ text: "to_timezone", at: position, quoted: false }];
    return postfix(LEVEL.postfix, position, (operand) => call(path, [operand, zone]));
  },
  postfix_escape(escape, string): FlatItem {
    const character: Expression = { kind: "string", at: at(string), value: token(string).text };
    return postfix(LEVEL.equality, at(escape), (operand) => {
      if (operand.kind !== "binary" || !/like$/.test(operand.operator)) {
        throw new SqlError("ESCAPE must follow LIKE or ILIKE", at(escape));
      }
      return { ...operand, right: call([{ ...name(escape), text: "like_pattern" }], [operand.right, character]) };
    });
  },
  postfix_field(dot, field): FlatItem {
    return postfix(
      LEVEL.postfix,
      at(dot),
      (operand) => ({ kind: "field", at: at(dot), operand, name: name(field) }),
    );
  },
  postfix_within(within, _open, first, _commas, rest, _close): FlatItem {
    const hashes = list<Expression>(first, rest);
    return postfix(LEVEL.membership, at(within), (operand) => ({
      ...call([name(within)], [operand, ...hashes]),
      isInfix: true,
    }));
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
    return { kind: "null", at: at(node), ...spelling(token(node)) };
  },
  operand_true(node): Expression {
    return { kind: "boolean", at: at(node), value: true, ...spelling(token(node)) };
  },
  operand_false(node): Expression {
    return { kind: "boolean", at: at(node), value: false, ...spelling(token(node)) };
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
    // The value begins at the bracket, not at the word ARRAY.
    const open = tokenIndex(array) + 1;
    return { kind: "array", at: matched.source.tokens[open]!.at, items: matched.source.arrayItems(open) };
  },
  operand_cast(cast, _open, expr, _as, type, _close): Expression {
    return { kind: "cast", at: at(cast), operand: expr.tree(), type: type.tree(), style: "cast" };
  },
  operand_extract(extract, _open, unit, _from, expr, _close): Expression {
    const { text, kind } = token(unit);
    const unitText: Expression = { kind: "string", at: at(unit), value: text };
    // A unit without quotes keeps none in the column's name.
    if (kind !== "string") unitText.spelling = text;
    return call([name(extract)], [unitText, expr.tree()]);
  },
  operand_trim(trim, _open, side, characters, _from, text, _close): Expression {
    const named = { both: "btrim", leading: "ltrim", trailing: "rtrim" }[word(side)];
    if (named === undefined) {
      throw new SqlError("TRIM needs BOTH, LEADING or TRAILING before the characters", at(side));
    }
    return call([{ ...name(trim), text: named }], [text.tree(), characters.tree()]);
  },
  operand_substring(substring, _open, text, _from, from, _for, count, _close): Expression {
    return call([name(substring)], [text.tree(), from.tree(), count.tree()]);
  },
  operand_all(all, _open, array, _close): Expression {
    return call([{ text: "all", at: at(all), quoted: false }], [array.tree()]);
  },
  operand_exists(exists, _open, query, _close): Expression {
    return { kind: "exists", at: at(exists), query: query.tree() };
  },
  operand_zoned(type, _with, _time, _zone, string): Expression {
    return typedText(type, string);
  },
  operand_typed: typedText,
  operand_call(path, _open, args, close, nulls, over): Expression {
    const called = call(path.tree(), [], optional(args));
    if (called.name.toLowerCase() === "cast") throw new SqlError("CAST needs AS and a type", at(close));
    if (given(nulls)) Object.assign(called, { ignoreNulls: word(nulls) === "ignore", nullsAt: at(nulls) });
    if (given(over)) called.over = over.child(0).tree();
    else if (given(nulls)) throw new SqlError("IGNORE NULLS needs OVER after it", at(nulls));
    return choiceOf(called) ?? called;
  },
  operand_column(path): Expression {
    return { kind: "column", at: at(path), path: path.tree() };
  },
  operand_quotedPath(first, _dots, rest): Expression {
    return { kind: "column", at: at(first), path: [first, ...rest.children].map(name) };
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
  args_list(distinct, first, _commas, rest, orderBy): Partial<FunctionCall> {
    const args = list<Expression>(first, rest);
    return { args, distinct: given(distinct), ...(given(orderBy) && { orderBy: optional(orderBy) }) };
  },
  over_spec(_over, spec) {
    return spec.tree();
  },
  over_reference(_over, windowName) {
    return { reference: name(windowName) };
  },
  windowSpec(open, base, partitionBy, orderBy, frame, _close): Window {
    const window: Window = { at: at(open), partitionBy: optional(partitionBy) ?? [], orderBy: optional(orderBy) ?? [] };
    if (given(partitionBy)) window.partitionAt = at(partitionBy);
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
      start: { kind: "unbounded preceding", at: position, wordAt: position },
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
    return unboundedOf(unbounded, direction);
  },
  bound_current(current, _row): FrameBound {
    return { kind: "current row", at: at(current) };
  },
  bound_offset(unit, timeUnit, direction): FrameBound {
    return offsetBound(unit, buildExpression(unit.tree()), timeUnit, direction);
  },
  joinBound_unbounded(unbounded, direction): FrameBound {
    return unboundedOf(unbounded, direction);
  },
  joinBound_current(current, _row): FrameBound {
    return { kind: "current row", at: at(current) };
  },
  joinBound_offset(expr, timeUnit, direction): FrameBound {
    return offsetBound(expr, expr.tree(), timeUnit, direction);
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
      ...words.tree() as Pick<TypeName, "name" | "spelling">,
      parameters: optional(parameters) ?? [],
      dimensions: dimensions.numChildren,
    };
  },
  typeWords_double(_double, _precision) {
    return { name: "double precision" };
  },
  typeWords_varying(_character, _varying) {
    return { name: "character varying" };
  },
  typeWords_zone(_timestamp, withNode, _time, _zone) {
    return { name: `timestamp ${word(withNode)} time zone` };
  },
  typeWords_schema(_schema, _dot, typeName) {
    return { name: word(typeName) };
  },
  typeWords_name(typeName) {
    return { name: word(typeName), ...spelling(token(typeName)) };
  },
  typeParameters(_open, first, _commas, rest, _close) {
    return [first, ...rest.children].map((parameter) => token(parameter).text);
  },
};

function expression(first: Node, infixes: Node, units: Node): Expression {
  const flat = first.tree() as FlatItem[];
  if (infixes.numChildren > 0) {
    const operators = infixes.children;
    const operands = units.children;
    for (let index = 0; index < operators.length; index++) {
      flat.push(operators[index]!.tree());
      for (const item of operands[index]!.tree() as FlatItem[]) flat.push(item);
    }
  }
  return buildExpression(flat);
}

function unitItems(prefixes: Node, operand: Node, postfixes: Node): FlatItem[] {
  const flat: FlatItem[] = [];
  for (const prefix of prefixes.children) flat.push({ part: "prefix", operator: word(prefix), at: at(prefix) });
  flat.push({ part: "operand", expression: operand.tree() });
  for (const postfix of postfixes.children) flat.push(postfix.tree());
  return flat;
}

function symbolItem(symbol: Node): FlatItem {
  const { text, at } = token(symbol);
  return text === "<>" ? { part: "infix", operator: "!=", spelling: text, at } : { part: "infix", operator: text, at };
}

function postfix(level: number, at: number, apply: (operand: Expression) => Expression): FlatItem {
  return { part: "postfix", level, at, apply };
}

function unboundedOf(unbounded: Node, direction: Node): FrameBound {
  const kind = word(direction) === "preceding" ? "unbounded preceding" : "unbounded following";
  return { kind, at: at(unbounded), wordAt: at(direction) };
}

function offsetBound(node: Node, offset: Expression, timeUnit: Node, direction: Node): FrameBound {
  const bound: FrameBound = {
    kind: word(direction) as "preceding" | "following",
    at: at(node),
    wordAt: at(direction),
    offset,
  };
  if (given(timeUnit)) bound.unit = name(timeUnit);
  return bound;
}

/** `switch(value, when, then, …[, else])` is a CASE over the value. */
function choiceOf({ name, schema, args, at, distinct, orderBy, over }: FunctionCall): Expression | undefined {
  const [operand, ...rest] = args;
  const isPlain = schema === undefined && !distinct && orderBy === undefined && over === undefined;
  if (name.toLowerCase() !== "switch" || !isPlain || operand === undefined || rest.length < 2) return undefined;
  const chosen: Expression = { kind: "case", at, operand, branches: [] };
  for (let i = 0; i + 1 < rest.length; i += 2) chosen.branches.push({ when: rest[i]!, then: rest[i + 1]! });
  if (rest.length % 2 === 1) chosen.otherwise = rest.at(-1)!;
  return chosen;
}

/** A text behind the name of its type. */
function typedText(type: Node, string: Node): Expression {
  const operand: Expression = { kind: "string", at: at(string), value: token(string).text };
  const typeName = { at: at(type), name: word(type), ...spelling(token(type)), parameters: [], dimensions: 0 };
  return { kind: "cast", at: at(type), operand, type: typeName, style: "cast" };
}
