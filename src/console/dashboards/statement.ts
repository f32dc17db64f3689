/**
 * Passes the time range and the variables to a panel's statement: with a DECLARE before it, and lists in place of their names,
 * because DECLARE has no lists. The values are literals, so that no value can change the statement.
 */
import { literal } from "../store/schema.ts";
import { listOf, type Variable } from "./model.ts";
import { type Range, rangeValues } from "./range.ts";

const SKIPPED = /'(?:[^']|'')*'?|"(?:[^"]|"")*"?|--[^\n]*|\/\*[^]*?(?:\*\/|$)/g;
const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;

/** The value of a variable is invalid. */
export class VariableError extends Error {}

/** Names that the statement declares itself keep its values. @throws {VariableError} */
export function fullStatement(given: string, range: Range, variables: readonly Variable[]): string {
  const isOwn = ({ name }: { name: string }) => new RegExp(`@${name}\\s*:=`, "i").test(codeOf(given));
  const lists = variables.filter((one) => one.isList && !isOwn(one));
  const statement = lists.reduce(withList, given), code = codeOf(statement);
  const values: { name: string; sql(): string }[] = [
    ...Object.entries(rangeValues(range)).map(([name, sql]) => ({ name, sql: () => sql })),
    ...variables.filter(({ isList }) => !isList).map((one) => ({ name: one.name, sql: () => valueOf(one, one.value) })),
  ];
  const declared = values.filter((one) => usesOf(one.name).test(code) && !isOwn(one))
    .map(({ name, sql }) => `@${name} := ${sql()}`);
  if (declared.length === 0) return statement;
  const before = `DECLARE ${declared.join(", ")}`;
  const own = /^\s*declare\b/i.exec(code);
  // The statement's own declarations follow in the same list.
  return own === null ? `${before} ${statement}` : `${before},${statement.slice(own[0].length)}`;
}

/** The statement with spaces in the place of texts and comments. */
const codeOf = (statement: string) => statement.replace(SKIPPED, (skipped) => " ".repeat(skipped.length));
const usesOf = (name: string) => new RegExp(`@${name}\\b(?!\\s*:=)`, "gi");

function withList(statement: string, variable: Variable): string {
  const { name, choices = [] } = variable, uses = [...codeOf(statement).matchAll(usesOf(name))];
  if (uses.length === 0) return statement;
  const chosen = listOf(variable), values = chosen.length > 0 ? chosen : choices;
  const sql = values.length === 0 ? "null" : values.map((value) => valueOf(variable, value)).join(", ");
  return uses.reduceRight(
    (text, { index, 0: use }) => text.slice(0, index) + sql + text.slice(index + use.length),
    statement,
  );
}

function valueOf({ name, type }: Variable, value: string): string {
  if (type === "text") return literal(value);
  if (value.trim() === "") return "null";
  if (!NUMBER.test(value.trim())) throw new VariableError(`@${name}: found '${value}', expected a number`);
  return value.trim();
}
