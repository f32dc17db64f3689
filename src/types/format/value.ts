/** One value as text: for literals and metadata, never in loops over rows. */
import type { Value } from "../layout.ts";
import { typeOf } from "../registry.ts";

/** The text that a cast of a value of type `tag` to STRING gives; null stays null. */
export function formatValue(value: Value, tag: string): string | null {
  if (value === null || typeof value === "string") return value;
  return typeof value === "boolean" ? String(value) : typeOf(tag).text.format(value);
}
