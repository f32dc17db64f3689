/** What the next run of kept operators has to change, by two plans. */
import type { Expr, ScanNode, ScanReading } from "../sql/plan.ts";
import type { Value } from "../types/mod.ts";
import { mapConstants } from "./compiler/expression.ts";
import type { Changes, Constant } from "./contract.ts";

export class PlanChanges implements Changes {
  private readonly taken = new Set<object>();

  constructor(
    private readonly scans: readonly ScanReading[],
    /** Ids of scans that read other rows, or may. */
    private readonly changedScans: ReadonlySet<number>,
    /** Constants and lists of IN of the last plan, and what the next one has in their places. Those of the same values can be missing. */
    private readonly replaced: ReadonlyMap<object, object> = new Map(),
  ) {}

  private get hasConstants(): boolean {
    return this.replaced.size > 0;
  }

  scanOf(scan: ScanNode): ScanNode {
    const { intervals } = this.scans.find(({ id }) => id === scan.id)!, { predicate } = scan;
    return { ...scan, intervals, predicate: predicate && this.mapped(predicate) };
  }

  take(conditions: readonly Expr[]): readonly Expr[] {
    if (!this.hasConstants) return conditions;
    const taken = conditions.map((condition) => {
      return mapConstants(condition, (e) => this.noted(e, this.constant(e)), (v) => this.noted(v, this.list(v)));
    });
    return taken.every((condition, k) => condition === conditions[k]) ? conditions : taken;
  }

  constant(constant: Constant): Constant {
    return (this.replaced.get(constant) ?? constant) as Constant;
  }

  list(values: readonly Value[]): readonly Value[] {
    return (this.replaced.get(values) ?? values) as readonly Value[];
  }

  mapped(expr: Expr): Expr {
    return this.hasConstants ? mapConstants(expr, (e) => this.constant(e), (v) => this.list(v)) : expr;
  }

  isChanged(scan: number): boolean {
    return this.changedScans.has(scan);
  }

  get takenCount(): number {
    return this.taken.size;
  }

  /** True if operators have taken all that is replaced. Otherwise some of them still have a former value. */
  get areTaken(): boolean {
    return this.taken.size === this.replaced.size;
  }

  private noted<T extends object>(before: T, after: T): T {
    if (before !== after) this.taken.add(before);
    return after;
  }
}
