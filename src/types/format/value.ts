/** One value as text: for literals and metadata, never in loops over rows. */
import type { Value } from "../layout.ts";
import { typeOf } from "../registry.ts";

/** Formats the value as a cast from type `tag` to STRING does. Null stays null. */
export function formatValue(value: Value, tag: string): string | null {
  if (value === null || typeof value === "string") return value;
  return typeof value === "boolean" ? String(value) : typeOf(tag).text.format(value);
}
