/** Makes operators from a plan, as chosen by the physical pass. */
import { notSupported } from "../../errors.ts";
import type { Plan } from "../../sql/plan.ts";
import type { Operator, QueryContext, WorkingRows } from "../contract.ts";
import { sourceOf } from "../physical/facts.ts";
import { type PhysicalPlan, physicalPlan, type PlanFacts } from "../physical/mod.ts";
import type {
  PhysicalJoin,
  PhysicalLastRows,
  PhysicalSource,
  PhysicalSplice,
  PhysicalTimeJoin,
  Reading,
} from "../physical/plan.ts";
import { createGrouping } from "./aggregate.ts";
import type { PipelineBase } from "./base-plan.ts";
import { assertingContract } from "./contract.ts";
import { createFiles } from "./files.ts";
import { createHorizonJoin } from "./horizon-join.ts";
import { createJoin } from "./join.ts";
import { createLastRowsJoin } from "./last-rows-join.ts";
import { createLatest } from "./latest.ts";
import { createLimit } from "./limit.ts";
import { mergedTimeJoin } from "./merged-time-join.ts";
import { createParquet } from "./parquet.ts";
import { Pipeline } from "./pipeline.ts";
import { createRecursion, createWorking } from "./recursion.ts";
import { createSample } from "./sample.ts";
import { createSequence } from "./sequence.ts";
import { createSet } from "./set.ts";
import { createSort } from "./sort.ts";
import { createSpooled } from "./spooled.ts";
import { createSpliceJoin } from "./splice-join.ts";
import { createUnnest } from "./unnest.ts";
import { createValues } from "./values.ts";
import { createWindow } from "./window.ts";
import { createWindowJoin } from "./window-join.ts";

/** Operators that replace leaves of a plan, for tests. */
export interface Leaves {
  get(node: Plan): Operator | undefined;
}

/** Makes the operator of a whole plan. It must be closed in any case. If this throws, nothing is left open. */
export function createOperator(plan: Plan, context: QueryContext & PlanFacts, leaves?: Leaves): Operator {
  return new Builder(context, leaves).create(physicalPlan(plan, { ...context, spills: context.spill !== undefined }));
}

class Builder {
  constructor(private readonly context: QueryContext, private readonly leaves?: Leaves) {}

  create(plan: PhysicalPlan): Operator {
    const { analysis } = this.context;
    const operator = assertingContract(this.closing((opened) => this.createNode(plan, opened)));
    return analysis?.measured(plan.id, operator) ?? operator;
  }

  /** Closes what `make` has opened if it fails. */
  private closing<T>(make: (opened: { close(): void }[]) => T): T {
    const opened: { close(): void }[] = [];
    try {
      return make(opened);
    } catch (error) {
      for (const each of opened) each.close();
      throw error;
    }
  }

  private createNode(plan: PhysicalPlan, opened: { close(): void }[]): Operator {
    if (plan.operator !== "join") this.countToRead(plan);
    const context = this.contextOf(plan), { inputs } = plan;
    const input = (index = 0): Operator => {
      const operator = this.create(inputs[index]);
      opened.push(operator);
      return operator;
    };
    const open = (reading: Reading) => this.open(reading, inputs, opened);
    switch (plan.operator) {
      case "pipeline":
        return new Pipeline(open(plan.reading), plan.reading, context, plan);
      case "join": {
        const join = this.createJoin(plan);
        opened.push(join);
        const reading: Reading = {
          base: { kind: "join" },
          baseColumns: plan.columns,
          columns: plan.node.columns,
          ...plan.over,
        };
        return new Pipeline({ kind: "join", join }, reading, context);
      }
      case "aggregate":
        return createGrouping(plan.grouping, open, input, context);
      case "sample":
        return createSample(plan.node, plan.way, open, input, context);
      case "sort":
        return createSort(plan.node, plan.way, open, input, context);
      case "latest":
        return createLatest(plan.node, plan.way, open, input, context);
      case "limit":
        return createLimit(plan.node, plan.way, input(), context);
      case "window":
        return createWindow(plan.node, plan.way, input(), context, input);
      case "time join":
        return this.createTimeJoin(plan, [input(0), input(1)], context);
      case "window join":
        return createWindowJoin(plan.node, input(0), input(1), context);
      case "horizon join":
        return createHorizonJoin(plan.node, input(0), input(1), context);
      case "set":
        return createSet(plan, input(0), input(1), context, () => [input(0), input(1)]);
      case "unnest":
        return createUnnest(plan.node, input(), context);
      case "recursion":
        return createRecursion(plan.node, context, {
          first: () => this.create(inputs[0]),
          step: (working) => this.within(working).create(inputs[1]),
        });
      case "source":
        return this.leaves?.get(plan.node) ?? createSource(plan.node, context);
    }
  }

  /** For a round of a recursion, over the rows of the previous round. */
  private within(rows: [id: number, rows: WorkingRows]): Builder {
    const working = new Map([...this.context.working ?? [], rows]);
    return new Builder({ ...this.context, working }, this.leaves);
  }

  private open(reading: Reading, inputs: readonly PhysicalPlan[], opened: { close(): void }[]): PipelineBase {
    const { base } = reading, [first] = inputs;
    if (base.kind === "scan") {
      return { ...base, source: sourceOf(base.node, this.context), reader: reading.reader };
    }
    if (base.kind === "join" && first.operator === "join") {
      const join = this.createJoin(first);
      opened.push(join);
      return { kind: "join", join };
    }
    const operator = this.create(first);
    opened.push(operator);
    return { kind: "operator", input: operator };
  }

  private createJoin(plan: PhysicalJoin | PhysicalLastRows | PhysicalSplice) {
    this.countToRead(plan);
    return this.closing((opened) => {
      if (plan.way === "splice") {
        const [left, right] = plan.inputs;
        return createSpliceJoin(plan, () => this.createBoth(left, right), this.contextOf(plan));
      }
      const left = this.open(plan.left, plan.inputs, opened);
      const openRight = () => this.create(plan.inputs.at(-1)!);
      if (plan.way === "last rows") {
        const openBoth = () =>
          this.closing((opened): [PipelineBase, Operator] => [this.open(plan.left, plan.inputs, opened), openRight()]);
        return createLastRowsJoin(plan, left, openRight, openBoth, this.contextOf(plan));
      }
      const right = openRight();
      opened.push(right);
      return createJoin(plan, left, right, this.contextOf(plan));
    });
  }

  private createTimeJoin(plan: PhysicalTimeJoin, inputs: [Operator, Operator], context: QueryContext): Operator {
    const all = plan.node.columns.map((_, index) => index), [left, right] = plan.inputs;
    return mergedTimeJoin(plan.node, all, plan, inputs, () => this.createBoth(left, right), context);
  }

  private createBoth(left: PhysicalPlan, right: PhysicalPlan): [Operator, Operator] {
    return this.closing((opened) => {
      const first = this.create(left);
      opened.push(first);
      return [first, this.create(right)];
    });
  }

  /** The context for the operator of a node. */
  private contextOf({ id }: PhysicalPlan): QueryContext {
    return this.context.analysis?.contextOf(id, this.context) ?? this.context;
  }

  private countToRead({ node, fused }: PhysicalPlan): void {
    const { context } = this;
    for (const scan of [node, ...fused.map((each) => each.node)]) {
      if (scan.node === "scan") context.countToRead?.(sourceOf(scan, context).rowCount);
    }
  }
}

function createSource(node: PhysicalSource["node"], context: QueryContext): Operator {
  switch (node.node) {
    case "parquet":
      return createParquet(node, context);
    case "spooled":
      return createSpooled(node, context);
    case "files":
      return createFiles(node, context);
    case "values":
      return createValues(node, context);
    case "sequence":
      return createSequence(node, context);
    case "working":
      return createWorking(node, context);
    case "metadata":
      throw notSupported("Metadata that was not replaced by rows before the query", node.at);
  }
}
