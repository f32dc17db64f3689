/**
 * Gives a panel's statement the time range and the variables: by DECLARE in front of it. Values are literals there, so no value can
 * change the statement.
 */
import { literal } from "../store/schema.ts";
import type { Variable } from "./model.ts";
import { type Range, rangeValues } from "./range.ts";

const SKIPPED = /'(?:[^']|'')*'?|"(?:[^"]|"")*"?|--[^\n]*|\/\*[^]*?(?:\*\/|$)/g;
const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;

export interface FullStatement {
  text: string;
  /** What was put in front: positions of errors are behind it. */
  prefixLength: number;
}

/** The value of a variable cannot be used. */
export class VariableError extends Error {}

/** Names that the statement declares itself keep its values. @throws {VariableError} */
export function fullStatement(statement: string, range: Range, variables: readonly Variable[]): FullStatement {
  const code = statement.replace(SKIPPED, (skipped) => " ".repeat(skipped.length));
  const isUsed = (name: string) => new RegExp(`@${name}\\b(?!\\s*:=)`, "i").test(code);
  const isOwn = (name: string) => new RegExp(`@${name}\\s*:=`, "i").test(code);
  const values: [name: string, sql: string][] = [
    ...Object.entries(rangeValues(range)),
    ...variables.filter(({ name }) => isUsed(name)).map((one) => [one.name, valueOf(one)] as [string, string]),
  ];
  const declared = values.filter(([name]) => isUsed(name) && !isOwn(name)).map(([name, sql]) => `@${name} := ${sql}`);
  if (declared.length === 0) return { text: statement, prefixLength: 0 };
  const before = `DECLARE ${declared.join(", ")}`;
  const own = /^\s*declare\b/i.exec(code);
  if (own === null) return { text: `${before} ${statement}`, prefixLength: before.length + 1 };
  // Its own declarations follow in the same list.
  const rest = statement.slice(own[0].length);
  return { text: `${before},${rest}`, prefixLength: before.length + 1 - own[0].length };
}

function valueOf({ name, type, value }: Variable): string {
  if (type === "text") return literal(value);
  if (value.trim() === "") return "null";
  if (!NUMBER.test(value.trim())) throw new VariableError(`@${name}: found '${value}', expected a number`);
  return value.trim();
}
