/** Writes what a range has for each partition by hashes, one partition after the other. */
import type { Workspace } from "../columns.ts";
import type { BoundKernel } from "../compiler/binding.ts";
import type { QueryContext } from "../contract.ts";
import { PARTS } from "./group-order.ts";

/** Partition p has the elements offsets[p] … offsets[p + 1]-1 of those at `address`. */
export interface Scattered {
  address: number;
  sizeBytes: number;
  offsets: number[];
}

/** The kernels have the cell `cursors`: for each partition a number of elements, or the address of the next one. */
export class Scatter {
  private readonly cursors: Int32Array;

  constructor(
    private readonly kernels: { counting: BoundKernel; writing: BoundKernel },
    private readonly context: QueryContext,
    space: Workspace,
  ) {
    this.cursors = space.words(PARTS);
    for (const kernel of [kernels.counting, kernels.writing]) {
      kernel.setI32(kernel.cells.cursors, this.cursors.byteOffset);
    }
  }

  /** `width`, `slackBytes`: bytes of an element, and after the last one. `pass`: runs a kernel over the range. The caller frees the memory. */
  run(width: number, slackBytes: number, operator: string, pass: (kernel: BoundKernel) => void): Scattered {
    const { cursors, kernels: { counting, writing } } = this, offsets = [0];
    cursors.fill(0);
    pass(counting);
    for (const count of cursors) offsets.push(offsets.at(-1)! + count);
    const sizeBytes = Math.max(1, offsets[PARTS] * width + slackBytes);
    const address = this.context.memory.allocate(sizeBytes, operator);
    for (let part = 0; part < PARTS; part++) cursors[part] = address + offsets[part] * width;
    pass(writing);
    return { address, sizeBytes, offsets };
  }
}

/** What participants made of ranges, in the order of the table, with the number of the first element of each one. */
export function numbered<Range extends { range: number }>(
  ranges: Range[],
  firstNumber: number,
  countOf: (range: Range) => number,
): { ranges: (Range & { firstNumber: number })[]; next: number } {
  let next = firstNumber;
  const inOrder = ranges.sort((a, b) => a.range - b.range).map((range) => {
    const firstNumber = next;
    next += countOf(range);
    return { ...range, firstNumber };
  });
  return { ranges: inOrder, next };
}
