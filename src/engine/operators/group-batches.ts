/**
 * GROUP BY with aggregates without a kernel form (string_agg and others) or over distinct values (count(DISTINCT x)). Keys and
 * arguments become columns; a kernel writes the group number of every row; then each aggregate processes its columns with these.
 */
import type { AggregateNode, Column } from "../../sql/plan.ts";
import { typeOf } from "../../types/mod.ts";
import { Workspace } from "../columns.ts";
import { flushKernelRows } from "../compiler/binding.ts";
import { type Batch, MORSEL_ROWS, type Operator, type QueryContext, type Vector } from "../contract.ts";
import { type CompiledExpressions, compileExpressions } from "../expressions.ts";
import type { GroupWay } from "../physical/plan.ts";
import { CallState, numberer } from "./call-state.ts";
import type { Grouper, GroupTable } from "./group-table.ts";

const OPERATOR = "GROUP BY";

type BatchesWay = Extract<GroupWay, { kind: "batches" }>;

export class GroupedBatches implements Operator {
  readonly columns: readonly Column[];
  private readonly space: Workspace;
  private readonly stage: CompiledExpressions;
  private readonly keyCount: number;
  private groups?: { grouper: Grouper; table: GroupTable };
  private readonly numbers: number;
  private readonly calls: CallState[];
  private rowCount?: number;
  private out?: Vector[];
  private position = 0;

  constructor(
    node: AggregateNode,
    private readonly way: BatchesWay,
    private readonly input: Operator,
    private readonly context: QueryContext,
  ) {
    this.columns = node.columns;
    this.space = Workspace.of(context, OPERATOR);
    this.keyCount = node.keys.length;
    const exprs = [...node.keys, ...node.aggregates.flatMap((call) => call.args)];
    this.stage = compileExpressions(exprs, undefined, input.columns.map((column) => column.type), context, {
      operator: OPERATOR,
    });
    this.numbers = this.space.allocate(MORSEL_ROWS * 4);
    let next = this.keyCount;
    this.calls = node.aggregates.map((call, k) => {
      const first = next;
      next += call.args.length;
      return new CallState(call, first, way.distinct[k], context, this.space);
    });
  }

  next(): Batch | undefined {
    this.rowCount ??= this.consumeAll();
    const rowCount = Math.min(MORSEL_ROWS, this.rowCount - this.position);
    if (rowCount <= 0) return undefined;
    this.context.poll();
    this.out ??= this.columns.map(({ type }) => ({
      type,
      address: this.space.allocate(rowCount * typeOf(type).width),
    }));
    const { position, out } = this;
    if (this.groups !== undefined) {
      const { grouper, table } = this.groups;
      const dictionaries = grouper.outputDictionaries(this.columns.slice(0, this.keyCount));
      dictionaries.forEach((dictionary, k) => out[k].dictionary = dictionary);
      grouper.finish(table, position, position + rowCount, out.slice(0, this.keyCount).map((v) => v.address), []);
    }
    const columns = out.map((
      vector,
      k,
    ) => (k < this.keyCount
      ? vector
      : this.calls[k - this.keyCount].finish(vector, position, rowCount, this.rowCount!))
    );
    this.position += rowCount;
    return { rowCount, columns };
  }

  private consumeAll(): number {
    const { context, keyCount } = this;
    for (let batch = this.input.next(); batch !== undefined; batch = this.input.next()) {
      context.poll();
      const staged = this.stage.run(batch);
      let groupCount = 1;
      if (keyCount > 0) {
        const keys = staged.columns.slice(0, keyCount);
        this.groups ??= this.open(keys);
        const { grouper, table } = this.groups;
        grouper.consume(table, keys, 0, staged.rowCount, 0n, this.numbers);
        groupCount = grouper.groupCount(table);
      }
      for (const call of this.calls) {
        call.update(staged.columns, staged.rowCount, keyCount > 0 ? this.numbers : undefined, groupCount);
      }
    }
    if (keyCount > 0) return this.groups === undefined ? 0 : this.groups.grouper.groupCount(this.groups.table);
    for (const call of this.calls) call.update([], 0, undefined, 1);
    return 1;
  }

  private open(keys: readonly Vector[]): { grouper: Grouper; table: GroupTable } {
    const grouper = numberer(keys, this.way.table, this.context);
    return { grouper, table: grouper.create() };
  }

  close(): void {
    for (const call of this.calls) call.close();
    if (this.groups !== undefined) {
      this.groups.grouper.drop(this.groups.table);
      this.groups.grouper.close();
    }
    this.stage.close();
    this.space.release();
    this.input.close();
    flushKernelRows(this.context.heap.i64);
  }
}
