/** Expands arrays to rows: repeats each input row for the number of elements of its longest array. */
import type { UnnestNode } from "../../sql/plan.ts";
import { OutputColumns, textPair, Workspace } from "../columns.ts";
import { type Batch, MORSEL_ROWS, type Operator, type QueryContext, type Vector } from "../contract.ts";
import { typesOf } from "../physical/reading.ts";
import { Expressions } from "./input.ts";

export function createUnnest(plan: UnnestNode, input: Operator, context: QueryContext): Operator {
  return new Unnest(plan, input, context);
}

/** Elements of one array: `count` doubles, unaligned. */
interface Elements {
  address: number;
  count: number;
}

class Unnest implements Operator {
  readonly columns;
  private readonly space: Workspace;
  private readonly arrays: Expressions;
  private readonly batches: Iterator<Batch, undefined>;

  constructor(
    private readonly plan: UnnestNode,
    private readonly input: Operator,
    private readonly context: QueryContext,
  ) {
    this.columns = plan.columns;
    this.space = Workspace.of(context, "unnest");
    this.arrays = new Expressions(plan.arrays, typesOf(input.columns), context);
    this.batches = this.run();
  }

  next(): Batch | undefined {
    return this.batches.next().value;
  }

  private *run(): Generator<Batch, undefined> {
    const { plan, input, context: { heap } } = this;
    const { memory: { buffer } } = heap;
    const view = new DataView(buffer);
    const width = input.columns.length, first = width + plan.arrays.length;
    const rows = this.space.words(MORSEL_ROWS);
    const output = new OutputColumns(typesOf(this.columns), this.space);
    for (let batch = input.next(); batch !== undefined; batch = input.next()) {
      const vectors = this.arrays.run(batch);
      let filled = 0;
      const flush = (): Batch => {
        for (let c = 0; c < width; c++) output.gather(c, batch!.columns[c], rows, filled, false);
        const made = { rowCount: filled, columns: output.vectors };
        filled = 0;
        return made;
      };
      for (let row = 0; row < batch.rowCount; row++) {
        const lists = vectors.map((vector) => elementsAt(vector, row, heap, view));
        const count = Math.max(...lists.map((list) => list.count));
        for (let from = 0; from < count;) {
          if (filled === MORSEL_ROWS) yield flush();
          this.context.poll();
          const n = Math.min(count - from, MORSEL_ROWS - filled);
          rows.fill(row, filled, filled + n);
          lists.forEach((list, k) => {
            const to = (output.vectors[width + k].address >>> 3) + filled;
            for (let i = 0; i < n; i++) {
              heap.f64[to + i] = from + i < list.count ? view.getFloat64(list.address + 8 * (from + i), true) : NaN;
            }
          });
          if (plan.ordinality) {
            const to = (output.vectors[first].address >>> 3) + filled;
            for (let i = 0; i < n; i++) heap.i64[to + i] = BigInt(from + i + 1);
          }
          filled += n;
          from += n;
        }
      }
      if (filled > 0) yield flush();
    }
    return undefined;
  }

  close(): void {
    this.arrays.close();
    this.space.release();
    this.input.close();
  }
}

const NONE: Elements = { address: 0, count: 0 };

/** Elements of an array encoded by `encodeArray`: the number of dimensions, their lengths, the elements. */
function elementsAt(vector: Vector, row: number, heap: QueryContext["heap"], view: DataView): Elements {
  const [at, length] = textPair(heap, vector, row);
  if (length < 4) return NONE;
  const head = 4 + 4 * view.getUint32(at, true);
  return { address: at + head, count: (length - head) / 8 };
}
