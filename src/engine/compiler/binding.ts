/** A kernel with its parameter block: sets the parameters before a run, and runs the kernel. */
import { SHARED_WORD } from "../../storage/heap.ts";
import type { Workspace } from "../columns.ts";
import type { QueryContext, Vector } from "../contract.ts";
import type { CompiledKernel } from "./aggregate.ts";
import type { ChangedInputs, Input } from "./expression.ts";
import { CANCELLED, type Kernel, KERNEL_CELLS } from "./kernel.ts";

export class BoundKernel {
  readonly kernel: Kernel;
  readonly cells: Record<string, number>;
  readonly block: number;

  constructor(
    { run, cells }: CompiledKernel,
    private readonly inputs: readonly Input[],
    private readonly context: QueryContext,
    space: Workspace,
  ) {
    this.kernel = run;
    this.cells = cells;
    this.block = space.allocate(cells.count * 8);
    this.setI32(KERNEL_CELLS.cancel, context.cancelWord);
    inputs.forEach((input, k) => {
      const cell = KERNEL_CELLS.firstInput + 2 * k;
      if (input.kind === "constant") this.setConstant(k, input.value);
      else if (input.kind === "lookup") this.setI32(cell + 1, input.address);
      else if (input.kind === "symbolText") this.setI32(cell + 1, input.entries);
    });
  }

  /** Sets constants for the next run. */
  change(changed: ChangedInputs): void {
    for (const [k, value] of changed) this.setConstant(k, value);
  }

  /** Sets the k-th input, a constant, to another value. */
  setConstant(k: number, value: number | bigint): void {
    const { heap } = this.context, input = this.inputs[k];
    const at = this.block + (KERNEL_CELLS.firstInput + 2 * k) * 8;
    if (input.kind !== "constant") throw new Error("only constants can be set");
    if (input.type === "i32") heap.i32[at >>> 2] = Number(value);
    else if (input.type === "i64") heap.i64[at >>> 3] = BigInt(value);
    else if (input.type === "f32") heap.f32[at >>> 2] = Number(value);
    else heap.f64[at >>> 3] = Number(value);
  }

  setI32(cell: number, value: number): void {
    this.context.heap.i32[(this.block >>> 2) + cell * 2] = value;
  }

  setF64(cell: number, value: number): void {
    this.context.heap.f64[(this.block >>> 3) + cell] = value;
  }

  setI64(cell: number, value: bigint): void {
    this.context.heap.i64[(this.block >>> 3) + cell] = value;
  }

  getI32(cell: number): number {
    return this.context.heap.i32[(this.block >>> 2) + cell * 2];
  }

  /** Sets the addresses of a batch's columns. `rowBase` is added to the row numbers of a "row" input. */
  setColumns(columns: readonly Pick<Vector, "address">[], rowBase = 0n): void {
    this.inputs.forEach((input, k) => {
      const cell = KERNEL_CELLS.firstInput + 2 * k;
      if (input.kind === "row") this.setI64(cell, rowBase);
      else if (input.kind !== "constant") this.setI32(cell, columns[input.column].address);
    });
  }

  /** Runs the kernel and returns its result. Throws if the query was cancelled. */
  run(start: number, end: number): number {
    const { heap, cancelWord } = this.context;
    // Operators that are kept run for queries of other slots.
    this.setI32(KERNEL_CELLS.cancel, cancelWord);
    const result = this.kernel(this.block, start, end);
    if (result === CANCELLED) {
      this.context.poll();
      throw new Error("a kernel was cancelled but the query was not");
    }
    countRows(heap.i64, end - start);
    return result;
  }
}

/**
 * Counted in a number and added to the shared word from time to time, because atomic operations on BigInts are slow.
 */
let pending = 0;
function countRows(i64: BigInt64Array, rowCount: number): void {
  pending += rowCount;
  if (pending < 65_536) return;
  flushKernelRows(i64);
}

export function flushKernelRows(i64: BigInt64Array): void {
  if (pending > 0) Atomics.add(i64, SHARED_WORD.kernelRows / 2, BigInt(pending));
  pending = 0;
}
