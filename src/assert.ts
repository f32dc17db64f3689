/** Assertions of invariants, which no input can violate. */

/** `SUNDIAL_VERIFY=true`, which tests set, turns on assertions that cost more than a few steps. */
export const VERIFY = Deno.env.get("SUNDIAL_VERIFY") === "true";

/** @throws {Error} an internal error, if the condition does not hold. */
export function assert(condition: unknown, message = "assertion failed"): asserts condition {
  if (!condition) throw new Error(message);
}
