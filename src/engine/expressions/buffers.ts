/** Columns that a stage fills, which grow with the batches. */
import { typeOf, type Value } from "../../types/mod.ts";
import { fillConstant, TextArena, type Workspace } from "../columns.ts";
import type { QueryContext } from "../contract.ts";

/** The memory of one output column, which grows with the batches. */
export class Buffer {
  address = 0;
  rows = 0;
  private readonly width: number;

  constructor(private readonly space: Workspace, type: string) {
    this.width = typeOf(type).width;
  }

  reserve(rowCount: number): number {
    if (rowCount <= this.rows && this.address !== 0) return this.address;
    if (this.address !== 0) this.space.free(this.address);
    this.rows = Math.max(64, 2 ** Math.ceil(Math.log2(Math.max(1, rowCount))));
    return this.address = this.space.allocate(this.rows * this.width + 16); // lanes may read and write beyond the last row
  }
}

/** A column of one value, filled as far as batches required so far. */
export class ConstantColumn {
  private readonly buffer: Buffer;
  private filled = 0;
  private readonly arena: TextArena;

  constructor(
    private readonly context: QueryContext,
    space: Workspace,
    private readonly expr: { value: Value; type: string },
  ) {
    this.buffer = new Buffer(space, expr.type);
    this.arena = new TextArena(space);
  }

  reserve(rowCount: number): number {
    const address = this.buffer.reserve(rowCount);
    if (this.filled < rowCount) {
      this.filled = this.buffer.rows;
      fillConstant(this.context.heap, this.expr.type, address, this.filled, this.expr.value, this.arena);
    }
    return address;
  }
}
