/** Statement parameters that a client sends as text. */
import { SqlError, SQLSTATE } from "../errors.ts";
import type { Value } from "../types/mod.ts";
import { readParameter } from "../types/parse/mod.ts";

/** Returns the value of parameter `number` (from 1). @throws {SqlError} 22P02 */
export function textParameter(text: string, tag: string, number: number): Value {
  const value = readParameter(text, tag);
  if (value === null || typeof value !== "object") return value;
  throw new SqlError(`parameter $${number}: ${value.problem}`, 0, SQLSTATE.invalidText);
}
