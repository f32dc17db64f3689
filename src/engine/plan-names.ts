/**
 * A plan is sent to a worker once. Later requests name it by a number. Plans are never changed, and a statement that is planned again
 * after a change of its tables has another plan, hence another number.
 */
import { deserialize } from "node:v8";
import type { Plan } from "../sql/plan.ts";
import type { PostedPlan } from "./contract.ts";

/** Main's side: numbers plans, and tells when their statements are gone. */
export class PlanNames {
  private readonly names = new WeakMap<PostedPlan, number>();
  private readonly registry: FinalizationRegistry<number>;
  private nextName = 1;

  /** `onFreed` gets the number of a plan that nothing refers to any more. */
  constructor(onFreed: (name: number) => void) {
    this.registry = new FinalizationRegistry(onFreed);
  }

  nameOf(plan: PostedPlan): number {
    let name = this.names.get(plan);
    if (name === undefined) {
      this.names.set(plan, name = this.nextName++);
      this.registry.register(plan, name);
    }
    return name;
  }
}

/** The plans that main assumes a worker to have. If the worker has dropped one, it asks for it. */
export class PlansSent {
  private readonly sent = new Set<number>();
  private freed: number[] = [];

  has(name: number): boolean {
    return this.sent.has(name);
  }

  add(name: number): void {
    this.sent.add(name);
  }

  /** The worker does not know it any more. */
  forget(name: number): void {
    this.sent.delete(name);
  }

  /** The plan's statement is gone. */
  free(name: number): void {
    if (this.sent.delete(name)) this.freed.push(name);
  }

  /** Plans to be freed at the worker, for its next request. */
  takeFreed(): number[] {
    const { freed } = this;
    if (freed.length > 0) this.freed = [];
    return freed;
  }
}

const PLANS_MAX = 1_000;
/** Size of serialised plans. As objects they take some ten times as much. */
const PLAN_BYTES_MAX = 1 << 20;

/** A worker's side: the plans that it has received, up to `plansMax` and `bytesMax` of serialised plans. */
export class KnownPlans {
  /** The most recently used one last. */
  private readonly plans = new Map<number, { plan: Plan; bytes: number }>();
  private bytes = 0;

  constructor(private readonly plansMax = PLANS_MAX, private readonly bytesMax = PLAN_BYTES_MAX) {}

  get size(): number {
    return this.plans.size;
  }

  get(name: number): Plan | undefined {
    const known = this.plans.get(name);
    if (known === undefined) return undefined;
    this.plans.delete(name);
    this.plans.set(name, known);
    return known.plan;
  }

  /** Reads a plan and keeps it if it is not too long. */
  add(name: number, serialized: Uint8Array<ArrayBuffer>): Plan {
    const plan = deserialize(serialized) as Plan;
    if (serialized.length > this.bytesMax / 8) return plan;
    this.forget(name);
    this.plans.set(name, { plan, bytes: serialized.length });
    this.bytes += serialized.length;
    for (const oldest of this.plans.keys()) {
      if (this.plans.size <= this.plansMax && this.bytes <= this.bytesMax) break;
      this.forget(oldest);
    }
    return plan;
  }

  forget(name: number): void {
    const known = this.plans.get(name);
    if (known === undefined) return;
    this.plans.delete(name);
    this.bytes -= known.bytes;
  }
}
