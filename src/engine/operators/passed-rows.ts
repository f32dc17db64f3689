/** For EXPLAIN ANALYZE: counts the rows that pass predicates, for kernels that test more than these. */
import type { Expr } from "../../sql/plan.ts";
import type { Dictionary } from "../../storage/contract.ts";
import { Workspace } from "../columns.ts";
import { BoundKernel } from "../compiler/binding.ts";
import { projectKernel } from "../compiler/project.ts";
import type { QueryContext, Vector } from "../contract.ts";
import { fuse } from "../expressions.ts";

const OPERATOR = "EXPLAIN ANALYZE";

export class PassedRows {
  private readonly space: Workspace;
  private readonly kernel: BoundKernel;

  /** Undefined if nothing is to be counted. `node`: the operator whose statistics count the rows. */
  static of(
    node: number | undefined,
    predicates: readonly Expr[],
    types: readonly string[],
    dictionaries: readonly (Dictionary | undefined)[],
    context: QueryContext,
  ): PassedRows | undefined {
    if (context.analysis === undefined || node === undefined || predicates.length === 0) return undefined;
    return new PassedRows(node, predicates, types, dictionaries, context);
  }

  /** The predicates must be fusable. */
  private constructor(
    private readonly node: number,
    predicates: readonly Expr[],
    types: readonly string[],
    dictionaries: readonly (Dictionary | undefined)[],
    private readonly context: QueryContext,
  ) {
    this.space = Workspace.of(context, OPERATOR);
    const { compiler, predicate } = fuse(predicates, types, dictionaries, context, this.space, { operator: OPERATOR });
    const kernel = projectKernel(context.heap.memory, compiler.inputs, predicate, []);
    this.kernel = new BoundKernel(kernel, compiler.inputs, context, this.space);
  }

  count(columns: readonly Vector[], start: number, end: number): void {
    this.kernel.setColumns(columns);
    this.context.analysis?.countPassed(this.node, this.kernel.run(start, end));
  }

  close(): void {
    this.space.release();
  }
}
