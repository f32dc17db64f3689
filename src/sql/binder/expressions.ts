/** Binds expressions: resolves names and overloads in one scope, and inserts implicit casts. */
import { notSupported, SqlError, SQLSTATE } from "../../errors.ts";
import { didYouMean } from "../../nearest.ts";
import { typeOf, type Value } from "../../types/mod.ts";
import { notOf } from "../../types/parse/values.ts";
import { arrayDimensions, asDecimal, decimalOf, decimalTag } from "../../types/wide.ts";
import type { Expression, FunctionCall, OrderItem, TypeName } from "../ast.ts";
import { settingNames, settingOf } from "../client-settings.ts";
import { SUBSCRIPT } from "../functions/array-slices.ts";
import { JSON_TYPES } from "../functions/json.ts";
import { TEXT_ARRAY_FUNCTIONS } from "../functions/meta.ts";
import { callableNames, findOverload, isCalledBare } from "../functions/mod.ts";
import type { Expr, SortKey } from "../plan.ts";
import { bindAggregate } from "./aggregates.ts";
import { aggregateKind, bareCall, bindFunction, castEntry, parameterType } from "./calls.ts";
import { bindCase, bindChoice, bindExtreme } from "./case.ts";
import { bindComparison } from "./comparison.ts";
import { type Binding, findVariable, typeMismatch, unknownFunction, unknownVariable, UNTYPED } from "./context.ts";
import { convertCompared, convertConstant, fold } from "./convert.ts";
import type { Alike, ExpressionBinder, Scope } from "./expression-binder.ts";
import {
  arrayLiteral,
  type Constant,
  constant,
  FALSE,
  geohashLiteral,
  negated,
  NULL_CONSTANT,
  numberLiteral,
  textLiteral,
  TRUE,
} from "./literals.ts";
import { bindIn } from "./membership.ts";
import { metadataFunction } from "./metadata.ts";
import { isOidType, oidOfText } from "./object-ids.ts";
import { and, hasParameter, not, sizeOf } from "./plans.ts";
import { candidates, lookUp } from "./scope.ts";
import { computedTag, displayName, isCastOfLong, isInteger, isNumber, isText, isTime, tagOfType } from "./types.ts";
import { decimalCast, exactDecimal, shapedCast } from "./wide-casts.ts";

const INT_MAX = 2147483647;

type Binary = Extract<Expression, { kind: "binary" }>;

function isLogic(e: Binary): boolean {
  return e.operator === "and" || e.operator === "or";
}

export class Expressions implements ExpressionBinder {
  constructor(readonly binding: Binding) {}

  bind(e: Expression, scope: Scope): Expr {
    if (!isValue(e)) this.binding.spend(1, e.at);
    return this.binding.nested(e.at, () => this.binding.at(this.bindKind(e, scope), e.at));
  }

  /**
   * Binds a condition. `isOperand`: it is an operand of AND or OR, where null is false. @throws at the expression if it
   * is not BOOLEAN.
   */
  condition(e: Expression, scope: Scope, isOperand = false): Expr {
    const bound = this.settle(this.bind(e, scope), "BOOLEAN");
    if (bound.type === "NULL" && isOperand) return FALSE;
    if (bound.type !== "BOOLEAN") throw typeMismatch(`expected a condition: found ${displayName(bound.type)}`, e.at);
    return bound;
  }

  private bindKind(e: Expression, scope: Scope): Expr {
    switch (e.kind) {
      case "null":
        return NULL_CONSTANT;
      case "boolean":
        return e.value ? TRUE : FALSE;
      case "number":
        return numberLiteral(e.text, e.at);
      case "string":
        return textLiteral(e.value);
      case "geohash":
        return geohashLiteral(e.text, e.at);
      case "parameter":
        return this.parameter(e);
      case "variable": {
        const found = findVariable(scope.names, e.name);
        if (found === undefined) {
          throw unknownVariable(e.name, e.at, scope.names);
        }
        return this.bind(found.value, { ...scope, names: found.names });
      }
      case "column":
        return this.column(e, scope);
      case "star":
        throw new SqlError("* is not a value: it is allowed only in a select list and in count(*)", e.at);
      case "unary":
        return this.unary(e, scope);
      case "binary":
        return this.binary(e, scope);
      case "isNull": {
        const operand = this.settle(this.bind(e.operand, scope), "STRING");
        const test = this.isNull(operand, e.at);
        return e.negated ? this.negate(test, e.at) : test;
      }
      case "between":
        return this.between(e, scope);
      case "in":
        return bindIn(this, e, scope);
      case "inQuery": {
        if (scope.subqueries === undefined) throw notSupported("a sub-query here", e.at);
        const operand = this.bind(e.operand, scope);
        const test = scope.subqueries.membership(operand, e.query, scope.names, e.at);
        return e.negated ? not(test, e.at) : test;
      }
      case "cast": {
        if (isTextArray(e.type)) return this.textArray(e, scope);
        if (isOidType(e.type.name)) return this.objectId(e, scope);
        const tag = e.style === "::" && e.type.name === "float" ? "DOUBLE" : tagOfType(e.type, true);
        const { operand: inner } = e;
        const isExtract = inner.kind === "call" && inner.name.toLowerCase() === "json_extract" && JSON_TYPES.has(tag);
        if (isExtract && inner.over === undefined && !inner.distinct && inner.orderBy === undefined) {
          return this.function(`json_extract_${tag}`, this.args(inner, scope), inner.at);
        }
        const decimal = exactDecimal(e.operand, tag);
        if (decimal !== undefined) return decimal;
        const operand = this.bind(e.operand, scope);
        // Clients write literals this way: '\\x00ff'::bytea.
        const isBytea = e.type.name === "bytea" && isText(operand.type);
        const takesAnyType = operand.type === "NULL" || operand.type === UNTYPED;
        if (operand.type === "BINARY" !== (tag === "BINARY") && !takesAnyType && !isBytea) {
          const at = tag === "BINARY" ? e.type.at : e.at;
          throw typeMismatch(`${displayName(operand.type)} cannot be cast to ${displayName(tag)}`, at);
        }
        if (isBytea && operand.kind === "constant" && operand.value !== null) {
          const value = convertConstant(operand.value, operand.type, tag);
          if (value === undefined) {
            throw new SqlError(notOf(operand.value, "bytea"), e.operand.at, SQLSTATE.invalidText);
          }
          return constant(value, tag);
        }
        return this.cast(operand, tag, e.at);
      }
      case "case":
        return bindCase(this, e, scope);
      case "call":
        return this.call(e, scope);
      case "query":
        if (scope.subqueries === undefined) throw notSupported("a sub-query here", e.query.at);
        return scope.subqueries.scalar(e.query, scope.names, e.at);
      case "exists":
        if (scope.subqueries === undefined) throw notSupported("EXISTS here", e.at);
        return scope.subqueries.exists(e.query, scope.names, e.at);
      case "outer": {
        const column = scope.columns.find(({ outer }) => outer === e.index)!;
        return { kind: "column", index: column.index, type: column.type };
      }
      case "array":
        return this.array(e, scope);
      case "index":
        return this.index(e, scope);
      case "field":
        throw notSupported("a field of a composite value", e.name.at);
      case "list":
        throw new SqlError("a parenthesised list is not allowed here: expected a single value", e.at);
    }
  }

  private parameter({ index, at }: Extract<Expression, { kind: "parameter" }>): Expr {
    const { parameterTypes, context: { parameterValues } } = this.binding;
    const type = parameterTypes[index] ?? UNTYPED;
    if (parameterValues === undefined || type === UNTYPED) return { kind: "parameter", index, type, at };
    const value = parameterValues[index] ?? null;
    return this.binding.at(value === null ? this.nullOf(type) : constant(value, type), at);
  }

  /**
   * The value of a constant expression, or undefined. If it depends on the value of a parameter that is still unknown,
   * returns `standIn`, and the statement is bound again with the values.
   */
  constantOf(expr: Expr, standIn: Constant): Constant | undefined {
    const value = fold(this.settle(expr, standIn.type), this.binding);
    if (value !== undefined || !hasParameter(expr)) return value;
    this.binding.boundByValues = true;
    return this.binding.at({ ...standIn }, this.binding.positionOf(expr));
  }

  /** An array of constants is a constant. Other arrays are built for each row. */
  private array(e: Extract<Expression, { kind: "array" }>, scope: Scope): Expr {
    const items = e.items.map((item) => this.bind(item, scope));
    if (items.every(({ kind }) => kind === "constant")) return arrayLiteral(items, e.items.map(({ at }) => at), e.at);
    return this.function("array_of", items, e.at);
  }

  /** `a[1]`, `m[1, 2:]`: passes three numbers for each subscript: kind, from, to. */
  private index(e: Extract<Expression, { kind: "index" }>, scope: Scope): Expr {
    const operand = this.bind(e.operand, scope);
    const dimensions = arrayDimensions(operand.type);
    const [only] = e.subscripts;
    if (givesTextArray(e.operand, scope) && e.subscripts.length === 1 && only !== undefined && "index" in only) {
      return this.function("array_element", [operand, this.bind(only.index, scope)], e.at);
    }
    if (dimensions === 0) throw typeMismatch(`${displayName(operand.type)} has no elements`, e.at);
    if (e.subscripts.length > dimensions) {
      const first = e.subscripts[0]!;
      const at = "index" in first ? first.index.at : first.from?.at ?? e.at;
      throw typeMismatch(`too many subscripts: the array has ${dimensions} dimensions`, at);
    }
    const number = (value: bigint | null) => constant(value, "LONG");
    const numbers = e.subscripts.flatMap((subscript) => {
      if ("index" in subscript) return [number(SUBSCRIPT.index), this.bind(subscript.index, scope), number(null)];
      const from = subscript.from === undefined ? number(1n) : this.bind(subscript.from, scope);
      return subscript.to === undefined
        ? [number(SUBSCRIPT.sliceToEnd), from, number(null)]
        : [number(SUBSCRIPT.slice), from, this.bind(subscript.to, scope)];
    });
    return this.function("array_slice", [operand, ...numbers], e.at);
  }

  private column(e: Extract<Expression, { kind: "column" }>, scope: Scope): Expr {
    const single = e.path.length === 1 ? e.path[0]!.text.toLowerCase() : undefined;
    const alias = single === undefined ? undefined : scope.aliases?.get(single);
    if (alias !== undefined && (scope.aliasesFirst || candidates(scope.columns, e.path).length === 0)) {
      this.binding.spend(sizeOf(alias), e.at);
      return alias;
    }
    const isOther = single !== undefined && !e.path[0]!.quoted && (single === "nan" || isCalledBare(single));
    if (isOther && candidates(scope.columns, e.path).length === 0) {
      return single === "nan" ? NULL_CONSTANT : this.call(bareCall(single, e.at), scope);
    }
    const column = lookUp(scope.columns, e.path, e.at);
    return { kind: "column", index: column.index, type: column.type };
  }

  private unary(e: Extract<Expression, { kind: "unary" }>, scope: Scope): Expr {
    const operand = this.bind(e.operand, scope);
    if (e.operator === "not") {
      const settled = this.settle(operand, "BOOLEAN");
      if (settled.type === "NULL") return TRUE;
      if (settled.type !== "BOOLEAN") {
        throw typeMismatch(`NOT needs a BOOLEAN: found ${displayName(settled.type)}`, e.operand.at);
      }
      return scope.isFilter ? this.negateFilter(settled, e.at) : this.negate(settled, e.at);
    }
    const settled = this.settle(operand, e.operator === "~" ? "LONG" : "DOUBLE");
    if (settled.type === "NULL") return e.operator === "~" ? this.cast(settled, "LONG", e.at) : settled;
    if (e.operator === "+") return settled;
    if (e.operator === "-") {
      const folded = settled.kind === "constant" ? negated(settled) : undefined;
      if (folded !== undefined) return folded;
      return this.operator("neg", [settled], e.at);
    }
    return this.operator(e.operator, [settled], e.at);
  }

  /** Long chains are nested on the left, so the left operands are visited in a loop instead of recursively. */
  private binary(e: Binary, scope: Scope): Expr {
    if (isLogic(e)) return this.logic(e, scope);
    const list = asList(e);
    if (list !== undefined) return bindIn(this, list, scope);
    const array = arrayOfAny(e) ?? arrayOfAll(e);
    if (array !== undefined) {
      const bound = this.bind(e.left, scope), list = this.bind(array, scope);
      // Drivers encode a parameter as the array that PostgreSQL would announce.
      const isOpen = list.kind === "parameter" && list.type === UNTYPED;
      const isOfNumbers = isOpen && isNumber(bound.type);
      if (isOpen && !isOfNumbers) this.binding.parameterArrays[list.index] = "varchar";
      const element = this.settle(bound, "STRING");
      const test = this.isElement(element, this.settle(list, isOfNumbers ? "DOUBLE[]" : "STRING"), e);
      if (e.operator === "=") return test;
      // Null differs from nothing.
      return and([this.negate(test, e.at), this.negate(this.isNull(element, e.at), e.at)])!;
    }
    const chain: Binary[] = [];
    let first: Expression = e;
    while (first.kind === "binary" && !isLogic(first)) {
      chain.push(first);
      first = first.left;
    }
    let left = this.bind(first, scope);
    for (const link of chain.reverse()) {
      left = this.binding.at(this.binaryOf(link, left, this.bind(link.right, scope)), link.at);
    }
    return left;
  }

  /** `x = any(array)`, of an array of numbers or of one in PostgreSQL's text form. */
  private isElement(element: Expr, array: Expr, { left, at }: Binary): Expr {
    if (arrayDimensions(array.type) === 1 && isNumber(element.type)) {
      const position = this.function("array_position", [array, this.cast(element, "DOUBLE", left.at)], at);
      return this.operator(">", [position, constant(0, "INT")], at);
    }
    return this.function("is_element", [this.cast(this.settle(element, "STRING"), "STRING", left.at), array], at);
  }

  private binaryOf(e: Binary, left: Expr, right: Expr): Expr {
    switch (e.operator) {
      case "=":
      case "!=":
      case "<":
      case "<=":
      case ">":
      case ">=":
        return bindComparison(this, e.operator, left, right, e.at);
      case "not like":
      case "not ilike":
        return not(this.operator(e.operator.slice(4), [left, right], e.at), e.at);
      case "!~":
        // Without a pattern both are false.
        if (right.kind === "constant" && right.value === null) return FALSE;
        return not(this.operator("~", [left, right], e.at), e.at);
      default:
        return this.operator(e.operator, [left, right], e.at);
    }
  }

  private logic(e: Binary, scope: Scope): Expr {
    const operands: { side: Expression; at: number }[] = [];
    let left: Expression = e;
    while (left.kind === "binary" && left.operator === e.operator) {
      operands.push({ side: left.right, at: left.at });
      left = left.left;
    }
    let result = this.condition(left, scope, true);
    for (const { side, at } of operands.reverse()) {
      const right = this.condition(side, scope, true);
      result = this.operator(e.operator, [result, right], at);
    }
    return result;
  }

  /** A call of an operator's entry. Without a matching overload the error is at the operator. */
  operator(name: string, operands: Expr[], at: number): Expr {
    // An untyped operand added to a time is a number.
    const shifts = (name === "+" || name === "-") && operands.some((x) => isTime(x.type));
    let args = shifts ? operands.map((x) => this.settle(x, "LONG")) : this.settleAlike(operands, ALONE[name]);
    // A number before a date gives a number: the date counts as its milliseconds.
    if (shifts && isInteger(args[0]!.type) && args[1]?.type === "DATE") {
      args = [args[0]!, this.cast(args[1], "LONG", at)];
    }
    if (name === "+" || name === "-" || name === "*") args = this.wideOperands(name, args, at);
    if (DECIMAL_OPERATORS.has(name) && args.some(({ type }) => decimalOf(type) !== undefined)) {
      args = args.map((arg) => this.decimalOperand(name, arg, at));
    }
    const resolved = bindFunction(this, name, args, at, "operator");
    return this.binding.at(this.blamingArray(resolved, args), at);
  }

  /** With a DECIMAL operand, integers become decimals; constants with as many digits as they have. */
  private decimalOperand(operator: string, arg: Expr, at: number): Expr {
    if (decimalOf(arg.type) !== undefined) return arg;
    if (arg.type === "NULL") return this.nullOf(decimalTag(1, 0));
    const type = asDecimal(arg.type);
    if (type === undefined) throw typeMismatch(`${operator} does not accept DECIMAL and ${displayName(arg.type)}`, at);
    const value = fold(arg, this.binding)?.value;
    const digits = value === undefined || value === null ? type.precision : String(value).replace("-", "").length;
    return this.cast(arg, decimalTag(digits, 0), at);
  }

  /** Converts INT constants to LONG if their sum, difference or product overflows INT, unless the result wraps to the null of INT. */
  private wideOperands(operator: "+" | "-" | "*", args: Expr[], at: number): Expr[] {
    if (args.length !== 2 || args.some((arg) => arg.type !== "INT")) return args;
    const [a, b] = args.map((arg) => fold(arg, this.binding)?.value);
    if (typeof a !== "number" || typeof b !== "number") return args;
    const result = operator === "*" ? a * b : operator === "+" ? a + b : a - b;
    return Math.abs(result) <= INT_MAX + 1 ? args : args.map((arg) => this.cast(arg, "LONG", at));
  }

  /** A call of function `name`. Errors are at the call or at the argument that does not fit. */
  function(name: string, args: Expr[], at: number): Expr {
    return this.binding.at(this.blamingArray(bindFunction(this, name, args, at, "function"), args), at);
  }

  /** Reports runtime errors about the shapes of arrays at the first array. */
  private blamingArray(call: Expr, args: readonly Expr[]): Expr {
    const array = args.find(({ type }) => arrayDimensions(type) > 0);
    return array === undefined || call.kind !== "call" ? call : { ...call, at: this.binding.positionOf(array) };
  }

  /** Gives untyped parameters the type of the other operands; `alone` if these have none either. */
  settleAlike<T extends readonly Expr[]>(operands: readonly [...T], alone = "STRING"): Alike<T> {
    const other = operands.find((x) => x.type !== UNTYPED && x.type !== "NULL");
    return operands.map((x) => this.settle(x, other === undefined ? alone : parameterType(other.type))) as Alike<T>;
  }

  /** Gives an untyped parameter its type. `isColumn`: that of a column which takes it. */
  settle(expr: Expr, type: string, isColumn = false): Expr {
    if (expr.kind !== "parameter" || expr.type !== UNTYPED) return expr;
    const settled = this.binding.settleParameter(expr.index, type, isColumn);
    return this.binding.at({ ...expr, type: settled }, expr.at);
  }

  isNull(operand: Expr, at: number): Expr {
    if (operand.kind === "constant") return operand.value === null && typeOf(operand.type).nullable ? TRUE : FALSE;
    return this.operator("is_null", [operand], at);
  }

  negate(condition: Expr, at: number): Expr {
    if (condition.kind === "constant") return condition.value === true ? FALSE : TRUE;
    return not(condition, at);
  }

  /**
   * In a filter, NOT of a comparison such as `<` becomes the opposite comparison, so that nulls satisfy neither. (In
   * the select list, NOT of a comparison with null is true.)
   */
  private negateFilter(condition: Expr, at: number): Expr {
    if (condition.kind !== "call") return this.negate(condition, at);
    const open = condition.function.indexOf("(");
    const name = condition.function.slice(0, open);
    const opposite = OPPOSITE[name];
    if (opposite !== undefined) {
      return this.binding.at({ ...condition, function: opposite + condition.function.slice(open) }, at);
    }
    if (name === "not") return condition.args[0]!;
    if (name === "and" || name === "or") {
      const args = condition.args.map((arg) => this.negateFilter(arg, at));
      return this.binding.at({
        ...condition,
        function: (name === "and" ? "or" : "and") + condition.function.slice(open),
        args,
      }, at);
    }
    return not(condition, at);
  }

  private between(e: Extract<Expression, { kind: "between" }>, scope: Scope): Expr {
    const operand = this.bind(e.operand, scope);
    const low = this.bind(e.low, scope);
    const high = this.bind(e.high, scope);
    const settled = this.settleAlike([operand, low, high]);
    this.refuseBounds(settled, e.high.at);
    // BETWEEN with a null bound is false, even for a null.
    if (settled.some((bound, i) => i > 0 && isNullConstant(bound))) return e.negated ? TRUE : FALSE;
    // Texts between times are parsed as times.
    let [of, from, to] = settled;
    if (isText(of.type) && (isText(from.type) || isText(to.type))) of = this.cast(of, "TIMESTAMP", e.at);
    if (isTime(of.type)) {
      from = this.instant(from, of.type, e.low.at);
      to = this.instant(to, of.type, e.high.at);
    }
    const test = this.operator("between", [of, from, to], e.at);
    return e.negated ? not(test, e.at) : test;
  }

  /** Accepts integers, times, texts and addresses as bounds of BETWEEN. @throws at the last bound, like the dialect. */
  private refuseBounds(operands: [operand: Expr, ...bounds: Expr[]], at: number): void {
    const wrong = operands.find(({ type }, i) =>
      type === "FLOAT" || type === "DOUBLE" || type === "BOOLEAN" || type === "UUID" || (type === "CHAR" && i === 0)
    );
    if (wrong !== undefined) throw typeMismatch(`BETWEEN does not accept ${displayName(wrong.type)}`, at);
    const [operand, ...bounds] = operands;
    if (!isInteger(operand.type) && !isTime(operand.type) && !isText(operand.type)) return;
    if (bounds.some(({ type }) => type === "CHAR")) {
      throw typeMismatch(`BETWEEN: CHAR cannot be combined with ${displayName(operand.type)}`, at);
    }
  }

  /** A bound that is compared with a time. A constant text is parsed now and must be a time. */
  instant(bound: Expr, type: string, at: number): Expr {
    if (bound.kind !== "constant" || bound.value === null || isTime(bound.type)) return bound;
    const converted = convertCompared(bound.value, bound.type, type);
    if (converted === undefined || converted === null) {
      throw new SqlError(notOf(bound.value, displayName(type)), at, SQLSTATE.invalidText);
    }
    return constant(converted, type);
  }

  nullOf(type: string): Constant {
    return constant(nullValue(type), type);
  }

  /** `'{a,b}'::text[]`: such an array is represented by its text. */
  private textArray(e: Extract<Expression, { kind: "cast" }>, scope: Scope): Expr {
    const operand = this.settle(this.bind(e.operand, scope), "STRING");
    if (e.operand.kind === "parameter") this.binding.parameterArrays[e.operand.index] = e.type.name;
    if (isText(operand.type) || operand.type === "NULL") return this.cast(operand, "STRING", e.at);
    throw typeMismatch(`${displayName(operand.type)} cannot be cast to ${e.type.name}[]`, e.at);
  }

  private objectId(e: Extract<Expression, { kind: "cast" }>, scope: Scope): Expr {
    const given = this.bind(e.operand, scope);
    const isName = given.kind === "parameter" && (given.type === UNTYPED || isText(given.type));
    const operand = isName ? this.constantOf(given, constant("0", "STRING"))! : given;
    if (operand.kind !== "constant" || typeof operand.value !== "string") return this.cast(operand, "INT", e.at);
    return constant(oidOfText(e.type.name, operand.value, this.binding.context, e.operand.at), "INT");
  }

  /** An explicit or implicit cast. Constants are converted now if possible. */
  cast(expr: Expr, target: string, at: number): Expr {
    const tag = computedTag(target);
    const settled = this.settle(expr, tag);
    if (settled.type === tag || (settled.type === "SYMBOL" && target === "SYMBOL")) return settled;
    if (settled.type === "NULL" || (settled.kind === "constant" && settled.value === null && typeOf(tag).nullable)) {
      return this.binding.at(this.nullOf(tag), at);
    }
    // Their low 64 bits count, as for LONG.
    if (settled.type === "LONG256" && isCastOfLong(tag)) return this.cast(this.cast(settled, "LONG", at), target, at);
    const shaped = decimalCast(this, settled, tag, at) ?? shapedCast(this, settled, tag, at);
    if (shaped !== undefined) return this.binding.at(shaped, at);
    const entry = castEntry(tag, settled.type, settled.kind === "constant" ? settled.value : undefined);
    if (entry !== undefined && "problem" in entry) {
      throw new SqlError(entry.problem, this.binding.positionOf(settled), SQLSTATE.invalidText);
    }
    if (entry === undefined) {
      throw typeMismatch(`${displayName(settled.type)} cannot be cast to ${displayName(target)}`, at);
    }
    const call: Expr = { kind: "call", function: entry.id, args: [settled], type: tag, at };
    return this.binding.at(fold(call, this.binding) ?? call, at);
  }

  /** Converts `expr` to the type that an overload requires. */
  coerce(expr: Expr, target: string, at: number): Expr {
    if (expr.type === target) return expr;
    const settled = this.settle(expr, target);
    if (settled.kind === "constant") {
      if (settled.value === null) return this.binding.at(this.nullOf(target), this.binding.positionOf(settled));
      const value = convertConstant(settled.value, settled.type, target);
      if (value !== undefined) return this.binding.at(constant(value, target), this.binding.positionOf(settled));
    }
    // Where the dialect converts a text to a number implicitly, the text must be a number.
    const isStrict = (settled.type === "STRING" || settled.type === "VARCHAR") && isNumber(target);
    if (isStrict || isTime(settled.type)) {
      const found = findOverload(`${isStrict ? "assign" : "nearest"}_${target}`, [settled.type]);
      if ("entry" in found && found.types[0] === settled.type) {
        const call: Expr = { kind: "call", function: found.id, args: [settled], type: target, at };
        return this.binding.at(fold(call, this.binding) ?? call, at);
      }
    }
    return this.cast(settled, target, at);
  }

  private call(e: FunctionCall, scope: Scope): Expr {
    const name = e.name.toLowerCase();
    const [only] = e.args;
    if (name === "array" && e.args.length === 1 && only?.kind === "query") {
      if (scope.subqueries === undefined) throw notSupported("ARRAY over a sub-query here", e.at);
      return scope.subqueries.array(only.query, scope.names, e.at);
    }
    const kind = aggregateKind(name);
    if (e.over !== undefined) {
      if (e.orderBy !== undefined) throw notSupported("ORDER BY in a window function's arguments", e.orderBy[0]!.at);
      if (kind !== "window" && kind !== "aggregate") {
        throw new SqlError(`${e.name} is not a window function: OVER is not allowed`, e.at, SQLSTATE.undefinedFunction);
      }
      if (scope.windows === undefined) {
        throw new SqlError("a window function is not allowed here: compute it in a sub-query", e.at, SQLSTATE.grouping);
      }
      return scope.windows.add(e, scope);
    }
    if (name.startsWith("array_elem_") && e.args.length > 1) return this.function(name, this.args(e, scope), e.at);
    if (kind === "window") throw new SqlError(`${e.name} needs OVER`, e.at, SQLSTATE.grouping);
    if (kind === "aggregate" || (kind === "none" && e.distinct)) return bindAggregate(this, e, name, scope);
    if (name === "current_setting") return this.currentSetting(e, this.args(e, scope));
    if (name === "pg_backend_pid" && e.args.length === 0) return constant(this.binding.connectionNumber(), "INT");
    if (name === "unnest") {
      if (scope.unnest === undefined) throw notSupported("unnest outside of FROM and the select list", e.at);
      return scope.unnest.add(e, scope);
    }
    if (kind === "none" && metadataFunction(e.name) !== undefined) {
      throw new SqlError(`${e.name} gives rows: select from it`, e.at, SQLSTATE.undefinedFunction);
    }
    if (kind === "none") throw unknownFunction(e.name, e.at, callableNames());
    if (e.orderBy !== undefined) {
      throw new SqlError(`${e.name} is not an aggregate: ORDER BY is not allowed in its arguments`, e.orderBy[0]!.at);
    }
    if (e.distinct) {
      throw new SqlError(
        `${e.name} is not an aggregate: DISTINCT is not allowed in its arguments`,
        e.args[0]?.at ?? e.at,
      );
    }
    const args = this.args(e, scope);
    if (name === "greatest" || name === "least") return bindExtreme(this, name, args, e);
    return bindChoice(this, name, args, e) ?? this.function(name, args, e.at);
  }

  /**
   * Evaluates current_setting() of a constant name as a constant of the session. With `missing_ok`, an unknown name
   * gives NULL, otherwise an error, as in PostgreSQL.
   */
  private currentSetting(e: FunctionCall, args: Expr[]): Expr {
    const call = this.function("current_setting", args, e.at);
    const [named, ...others] = args;
    const name = this.constantOf(named!, constant(null, "STRING"))?.value;
    const [missingOk] = others.map((arg) => fold(arg, this.binding)?.value);
    if (typeof name !== "string") return call;
    const session = this.binding.sessionValues();
    const setting = settingOf(name, session);
    if (setting !== undefined) return constant(String(setting.value), "STRING");
    if (missingOk === undefined) return call;
    if (missingOk === true) return this.nullOf("STRING");
    const hint = didYouMean(name, settingNames(session));
    throw new SqlError(`there is no setting ${name}${hint}`, e.args[0]!.at, SQLSTATE.undefinedObject);
  }

  args(e: FunctionCall, scope: Scope): Expr[] {
    return e.args.map((arg) => this.bind(arg, scope));
  }

  /** Binds an item of ORDER BY inside a window. */
  sortKey(item: OrderItem, scope: Scope): SortKey {
    const expression = this.settle(this.bind(item.expression, scope), "STRING");
    return { expression, descending: item.descending, nulls: item.nulls };
  }
}

/** True for literals. They are not counted, because lists of values may be long. */
function isValue(e: Expression): boolean {
  return e.kind === "number" || e.kind === "string" || (e.kind === "unary" && isValue(e.operand));
}

function isNullConstant(expr: Expr): boolean {
  return expr.kind === "constant" && expr.value === null;
}

const DECIMAL_OPERATORS = new Set(["+", "-", "*", "/", "%", "=", "!=", "<", "<=", ">", ">="]);

/** Types of operands that are all untyped parameters; text for other operators. */
const ALONE: Record<string, string> = {
  "+": "DOUBLE",
  "-": "DOUBLE",
  "*": "DOUBLE",
  "/": "DOUBLE",
  "%": "DOUBLE",
  "&": "LONG",
  "|": "LONG",
  "^": "LONG",
};

const OPPOSITE: Record<string, string> = { "<": ">=", "<=": ">", ">": "<=", ">=": "<" };

/** The null of the type, or false or 0 if the type has no null. */
export function nullValue(type: string): Value {
  if (typeOf(type).nullable) return null;
  return type === "BOOLEAN" ? false : 0;
}

/** The array in `x = any(…)`, in PostgreSQL's text form. */
function arrayOfAny({ operator, right }: Binary): Expression | undefined {
  if (operator !== "=" || right.kind !== "call" || right.name.toLowerCase() !== "any") return undefined;
  return right.args.length === 1 && right.args[0]!.kind !== "query" ? right.args[0] : undefined;
}

/** The array in `x <> all(…)`. */
function arrayOfAll({ operator, right }: Binary): Expression | undefined {
  if (operator !== "!=" || right.kind !== "call" || right.name !== "all" || right.args.length !== 1) return undefined;
  return right.args[0];
}

/** True for calls and columns whose values are arrays in PostgreSQL's text form. */
function givesTextArray(e: Expression, { columns }: Scope): boolean {
  if (e.kind === "call") return TEXT_ARRAY_FUNCTIONS.has(e.name.toLowerCase());
  return e.kind === "column" && candidates(columns, e.path)[0]?.isTextArray === true;
}

/** Array types that PostgreSQL clients use in catalogue queries. */
function isTextArray({ name, dimensions }: TypeName): boolean {
  return dimensions === 1 && (name === "text" || name === "varchar" || name === "name" || name === "oid");
}

/** Reads `x = any(array[…])`, which tools write for `x in (…)`. */
function asList({ operator, at, left, right }: Binary): Extract<Expression, { kind: "in" }> | undefined {
  if (operator !== "=" || right.kind !== "call" || right.name.toLowerCase() !== "any") return undefined;
  const [list] = right.args;
  if (right.args.length !== 1 || list?.kind !== "array") return undefined;
  return { kind: "in", at, operand: left, items: list.items, bare: false, negated: false };
}
