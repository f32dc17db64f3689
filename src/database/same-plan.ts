/** Compares plans, which are plain data, for runs that are kept. */
import type { Plan } from "../sql/plan.ts";

/**
 * What one plan has in the place of another's constants and lists of IN: in the conditions of scans and filters, the bounds of LIMIT, and
 * the expressions of the result.
 */
export interface ReplacedConstants {
  /** Those that are other objects, by the objects of the first plan. */
  objects: Map<object, object>;
  /** Values differ, too. */
  areOthers: boolean;
}

/** Undefined if the plans differ in more than such constants, and intervals of scans that both have. */
export function constantsReplaced(a: Plan, b: Plan): ReplacedConstants | undefined {
  const comparison = new Comparison(outputsOf(a));
  return comparison.isSame(a, b, false) ? comparison : undefined;
}

/** The last projection of a plan that computes nothing else of its rows: no other operator has its expressions. */
function outputsOf(plan: Plan): Plan | undefined {
  const top = plan.node === "limit" ? plan.input : plan;
  let below = top;
  while (below.node === "project" || below.node === "filter") below = below.input;
  return top.node === "project" && (below.node === "scan" || below.node === "values") ? top : undefined;
}

class Comparison implements ReplacedConstants {
  readonly objects = new Map<object, object>();
  areOthers = false;

  /** `outputs`: a projection whose constants can be replaced. */
  constructor(private readonly outputs: Plan | undefined) {}

  isSame(a: unknown, b: unknown, isCondition: boolean): boolean {
    if (Object.is(a, b)) return true;
    if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
    if (Array.isArray(a)) {
      if (!Array.isArray(b) || a.length !== b.length) return false;
      for (let k = 0; k < a.length; k++) if (!this.isSame(a[k], b[k], isCondition)) return false;
      return true;
    }
    // Other objects are values with contents of their own, such as arrays of numbers.
    if (Object.getPrototypeOf(a) !== Object.prototype || Object.getPrototypeOf(b) !== Object.prototype) return false;
    return this.isSameRecord(a as Record<string, unknown>, b as Record<string, unknown>, isCondition);
  }

  private isSameRecord(a: Record<string, unknown>, b: Record<string, unknown>, isCondition: boolean): boolean {
    const { node, kind } = a;
    if (isCondition && kind === "constant" && b.kind === "constant") {
      return a.type === b.type && this.replaces(a, b, [a.value], [b.value]);
    }
    let left = 0;
    for (const name in b) if (b[name] !== undefined) left++;
    for (const name in a) {
      const value = a[name], other = b[name];
      if (value === undefined) continue;
      left--;
      if (node === "scan" && name === "intervals") {
        if (other === undefined) return false;
      } else if (isCondition && kind === "in" && name === "values") {
        if (!Array.isArray(other) || !this.replaces(value as unknown[], other, value as unknown[], other)) return false;
      } else if (!this.isSame(value, other, isCondition || canReplace(node, name) || this.isOutput(a, name))) {
        return false;
      }
    }
    return left === 0;
  }

  private isOutput(node: object, name: string): boolean {
    return node === this.outputs && name === "expressions";
  }

  /** Nulls stay nulls: kernels test for them, or do not. */
  private replaces(a: object, b: object, values: readonly unknown[], others: readonly unknown[]): boolean {
    if (Object.is(a, b)) return true;
    if (values.length !== others.length) return false;
    for (let k = 0; k < values.length; k++) {
      if (Object.is(values[k], others[k])) continue;
      if (values[k] === null || others[k] === null || typeof values[k] !== typeof others[k]) return false;
      this.areOthers = true;
    }
    const before = this.objects.get(a);
    this.objects.set(a, b);
    return before === undefined || before === b;
  }
}

/** True for the parts of nodes whose constants operators can replace. */
function canReplace(node: unknown, name: string): boolean {
  if (node === "limit") return name === "low" || name === "high";
  return name === "predicate" && (node === "scan" || node === "filter");
}
