import { batchEntry } from "./batch-entry.ts";
import type { BatchAggregateState, BatchColumn, BatchOut, FunctionEntry } from "./entry.ts";
import { isText, TIMES } from "./nodes.ts";

type Value = number | bigint | string;

function read(column: BatchColumn, row: number): Value {
  const { type, values } = column;
  if (isText(type)) return column.text(row)!;
  if (type !== "UUID") return values[row];
  return (BigInt.asUintN(64, values[2 * row + 1]) << 64n) | BigInt.asUintN(64, values[2 * row]);
}

function write(out: BatchOut, row: number, value: Value | undefined): void {
  if (value === undefined) return out.setNull(row);
  if (typeof value === "string") return out.setText(row, value);
  if (out.type !== "UUID") {
    out.values[row] = value;
    return;
  }
  out.values[2 * row] = BigInt.asIntN(64, value as bigint);
  out.values[2 * row + 1] = BigInt.asIntN(64, (value as bigint) >> 64n);
}

/** The best row of each group so far. `value`: undefined for null. */
interface Best {
  key: Value;
  value: Value | undefined;
}

class ArgState implements BatchAggregateState {
  private readonly best: (Best | undefined)[] = [];
  /** Letters of the texts. */
  private letters = 0;

  constructor(private readonly greatest: boolean) {}

  private offer(group: number, key: Value, value: () => Value | undefined): void {
    const now = this.best[group];
    // Among equal keys the first row wins.
    if (now === undefined || (this.greatest ? key > now.key : key < now.key)) {
      const best = { key, value: value() };
      this.letters += lettersOf(best.value) - lettersOf(now?.value);
      this.best[group] = best;
    }
  }

  update(groups: Int32Array | undefined, [value, key]: BatchColumn[], rowCount: number): void {
    for (let row = 0; row < rowCount; row++) {
      if (key.isNull(row)) continue;
      this.offer(
        groups === undefined ? 0 : groups[row],
        read(key, row),
        () => value.isNull(row) ? undefined : read(value, row),
      );
    }
  }

  merge(later: BatchAggregateState, mapping: Int32Array): void {
    (later as ArgState).best.forEach((best, group) => {
      if (best !== undefined) this.offer(mapping[group], best.key, () => best.value);
    });
  }

  finish(out: BatchOut, groupCount: number): void {
    for (let group = 0; group < groupCount; group++) write(out, group, this.best[group]?.value);
  }

  sizeBytes(): number {
    return this.best.length * 128 + this.letters * 2;
  }
}

function lettersOf(value: Value | undefined): number {
  return typeof value === "string" ? value.length : 0;
}

const OTHERS = ["LONG", "DOUBLE", ...TIMES];
const PAIRS = [
  ["UUID", "UUID"],
  ...OTHERS.flatMap((type) => [["UUID", type], [type, "UUID"], ["text", type]]),
];

/** arg_min() and arg_max() with a UUID as value or key, or a text as value, which kernels cannot hold. */
export const argValues: FunctionEntry[] = [false, true].flatMap((greatest) =>
  PAIRS.map(([value, key]) =>
    batchEntry(
      greatest ? "arg_max" : "arg_min",
      [{ name: "value", type: value }, { name: "key", type: key }],
      value === "text" ? ([type]) => type === "VARCHAR" ? type : "STRING" : value,
      `The value of the first row with the ${greatest ? "greatest" : "smallest"} key.`,
      undefined,
      value === "UUID" && key === "LONG"
        ? [[
          `SELECT ${greatest ? "arg_max" : "arg_min"}(to_uuid(x, 0), x) FROM long_sequence(3)`,
          `00000000-0000-0000-0000-00000000000${greatest ? 3 : 1}`,
        ]]
        : [],
      { aggregate: { kind: "batch", ordered: true, create: () => new ArgState(greatest) } },
    )
  )
);
