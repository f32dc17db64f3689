/** Compares plans, which are plain data, for runs that are kept. */
import type { Plan } from "../sql/plan.ts";

/** True if the plans differ at most in the intervals of scans that both have. */
export function isSameBesideIntervals(a: Plan, b: Plan): boolean {
  return isSame(a, b);
}

function isSame(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false;
    for (let k = 0; k < a.length; k++) if (!isSame(a[k], b[k])) return false;
    return true;
  }
  // Other objects are values with contents of their own, such as arrays of numbers.
  if (Object.getPrototypeOf(a) !== Object.prototype || Object.getPrototypeOf(b) !== Object.prototype) return false;
  return isSameRecord(a as Record<string, unknown>, b as Record<string, unknown>);
}

function isSameRecord(a: Record<string, unknown>, b: Record<string, unknown>): boolean {
  const isScan = a.node === "scan";
  let left = 0;
  for (const name in b) if (b[name] !== undefined) left++;
  for (const name in a) {
    const value = a[name];
    if (value === undefined) continue;
    left--;
    if (isScan && name === "intervals" ? b[name] === undefined : !isSame(value, b[name])) return false;
  }
  return left === 0;
}
