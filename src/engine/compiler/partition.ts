/**
 * Kernels for grouping by many keys. Rows are first partitioned by the upper bits of their key's hash, so that the groups of each
 * partition fit into a cache, and then the partitions are grouped one by one. A written row has its key's words, the arguments' words
 * and its number in the table. The row numbers serve to order the groups of all partitions by their first rows.
 */
import type { FusedAggregate } from "../../sql/functions/entry.ts";
import { type AggregateShape, type CompiledKernel, type KeyShape } from "./aggregate.ts";
import { BUCKET_BYTES, hashOf } from "./hash-groups.ts";
import type { Input } from "./expression.ts";
import { f32, f64, i32, i64, input, type IrNode, type WasmType } from "./ir.ts";
import { inputShape, kernelCache, KernelWriter, shapeOf } from "./kernel.ts";

/** The words of a written row, in order, without the row number. */
export interface RowShape {
  keys: readonly KeyShape[];
  /** Distinct arguments. */
  args: readonly IrNode[];
}

export function rowBytes(shape: RowShape): number {
  return 8 * (wordsOf(shape).length + shape.args.length) + 4;
}

function wordsOf(shape: RowShape): IrNode[] {
  return shape.keys.flatMap((key) => key.words);
}

function asWord(node: IrNode): IrNode {
  switch (node.type) {
    case "i32":
      return i64.extendS(node);
    case "i64":
      return node;
    case "f32":
      return i64.extendU(i32.reinterpret(node));
    case "f64":
      return i64.reinterpret(node);
  }
}

function fromWord(word: IrNode, type: WasmType): IrNode {
  switch (type) {
    case "i32":
      return i32.wrap(word);
    case "i64":
      return word;
    case "f32":
      return f32.reinterpret(i32.wrap(word));
    case "f64":
      return f64.reinterpret(word);
  }
}

/** The partition of a key, out of `2 ** bits`, by the upper bits of its hash. The lower bits select the bucket. */
function partOf(words: readonly IrNode[], bits: number): IrNode {
  return i32.wrap(i64.shrU(hashOf(words, words.map(() => false)), i64.const(BigInt(64 - bits))));
}

/**
 * With `write`, writes rows where `cursors` (one address for each partition) point, and advances these; otherwise
 * counts rows in `cursors`. Cells: cursors, firstRow (the number of row 0).
 */
export function scatterKernel(
  memory: WebAssembly.Memory,
  inputs: readonly Input[],
  predicate: IrNode | undefined,
  shape: RowShape,
  bits: number,
  write: boolean,
): CompiledKernel {
  const words = wordsOf(shape);
  const key = `scatter${bits}${write}|${inputShape(inputs)}|${predicate ? shapeOf(predicate) : ""}|${
    words.map(shapeOf)
  }|${shape.args.map(shapeOf)}`;
  return kernelCache(memory).get(key, () => {
    const writer = new KernelWriter(memory, inputs);
    const { code } = writer;
    const cells: Record<string, number> = { cursors: writer.cell(), firstRow: writer.cell() };
    cells.count = writer.cellCount;
    const cursors = writer.loadCell("i32", cells.cursors), firstRow = writer.loadCell("i32", cells.firstRow);
    const derived = words.map((word) => writer.derive(word));
    const cursor = code.local("i32"), at = code.local("i32");
    const values = write ? [...derived, ...shape.args.map(asWord)] : derived;
    writer.scalarRows(predicate, values, (row) => {
      code.get(cursors);
      writer.lower(partOf(derived, bits));
      code.i32(2).op("i32.shl").op("i32.add").tee(cursor).memory("i32.load").set(at);
      if (write) {
        values.forEach((value, k) => {
          code.get(at);
          writer.lower(value);
          code.memory("i64.store", 8 * k);
        });
        code.get(at).get(firstRow).get(row).op("i32.add").memory("i32.store", 8 * values.length);
      }
      code.get(cursor).get(at).i32(write ? rowBytes(shape) : 1).op("i32.add").memory("i32.store");
    });
    code.get(writer.end);
    return { bytes: writer.finish(), cells };
  });
}

/**
 * Writes the partition of each written row or record, both of which begin with the key's words: `bits` bits of the hash after
 * the first `skipped`. Cell: out, an i32 column.
 */
export function partNumbersKernel(
  memory: WebAssembly.Memory,
  width: number,
  keyWords: number,
  skipped: number,
  bits: number,
): { kernel: CompiledKernel; inputs: Input[] } {
  const inputs = Array.from({ length: keyWords }, (_, k): Input => ({ kind: "word", column: 0, width, k }));
  const kernel = kernelCache(memory).get(`partNumbers${width}|${keyWords}|${skipped}|${bits}`, () => {
    const writer = new KernelWriter(memory, inputs);
    const { code } = writer;
    const cells: Record<string, number> = { out: writer.cell() };
    cells.count = writer.cellCount;
    const out = writer.loadCell("i32", cells.out);
    const words = inputs.map((_, k) => writer.derive(input(k, "i64")));
    const hash = hashOf(words, words.map(() => false));
    const part = i64.and(i64.shrU(hash, i64.const(BigInt(64 - skipped - bits))), i64.const((1n << BigInt(bits)) - 1n));
    writer.scalarRows(undefined, words, (row) => {
      code.get(out).get(row).i32(2).op("i32.shl").op("i32.add");
      writer.lower(i32.wrap(part));
      code.memory("i32.store");
    });
    code.get(writer.end);
    return { bytes: writer.finish(), cells };
  });
  return { kernel, inputs };
}

/**
 * Divides the buckets of a hash table by the upper bits of their hashes, without the empty ones: with `write`, where `cursors` point (see
 * `scatterKernel`), otherwise it counts them. Rows are buckets. Cells: buckets, cursors.
 */
export function scatterBucketsKernel(memory: WebAssembly.Memory, bits: number, write: boolean): CompiledKernel {
  return kernelCache(memory).get(`scatterBuckets${bits}${write}`, () => {
    const writer = new KernelWriter(memory, []);
    const { code } = writer;
    const cells: Record<string, number> = { buckets: writer.cell(), cursors: writer.cell() };
    cells.count = writer.cellCount;
    const buckets = writer.loadCell("i32", cells.buckets), cursors = writer.loadCell("i32", cells.cursors);
    const bucket = code.local("i64"), cursor = code.local("i32"), at = code.local("i32");
    writer.scalarRows(undefined, [], (row) => {
      code.get(buckets).get(row).i32(3).op("i32.shl").op("i32.add").memory("i64.load").tee(bucket).op("i64.eqz").op(
        "i32.eqz",
      ).if(() => {
        code.get(cursors).get(bucket).op("i32.wrap_i64").i32(32 - bits).op("i32.shr_u");
        code.i32(2).op("i32.shl").op("i32.add").tee(cursor).memory("i32.load").set(at);
        if (write) code.get(at).get(bucket).memory("i64.store");
        code.get(cursor).get(at).i32(write ? BUCKET_BYTES : 1).op("i32.add").memory("i32.store");
      });
    });
    code.get(writer.end);
    return { bytes: writer.finish(), cells };
  });
}

/** Not an SQL function: the number of a group's first row, set when the group is created. */
const FIRST_ROW: FusedAggregate = {
  kind: "fused",
  ordered: true,
  state: () => [{ type: "i64", initial: -1n }],
  update: (state) => state,
  merge: ([first]) => [first],
  finish: ([first]) => first,
};

/** `initial`: the number, unless the kernel that makes records writes it. */
export function firstRowShape(initial?: IrNode): AggregateShape {
  return { aggregate: FIRST_ROW, id: "first row", types: [], args: [], initial: initial && [initial] };
}

/**
 * Keys and aggregates over written rows, with the first row's number as the last aggregate. `base` is the constant
 * input that row numbers are relative to.
 */
export function overWrittenRows(
  shape: RowShape,
  aggregates: readonly AggregateShape[],
): { inputs: Input[]; keys: KeyShape[]; aggregates: AggregateShape[]; base: number } {
  const width = rowBytes(shape), words = wordsOf(shape);
  const count = words.length + shape.args.length + 1;
  const inputs = Array.from({ length: count }, (_, k): Input => ({ kind: "word", column: 0, width, k }));
  // The base differs for each written piece.
  const base = inputs.push({ kind: "constant", type: "i64", value: 0n }) - 1;
  const word = (k: number) => input(k, "i64");
  let next = 0;
  const keys = shape.keys.map((key) => ({ ...key, words: key.words.map(() => word(next++)) }));
  const argument = new Map(shape.args.map((arg, k) => [shapeOf(arg), fromWord(word(words.length + k), arg.type)]));
  return {
    inputs,
    keys,
    aggregates: [
      ...aggregates.map((aggregate) => ({
        ...aggregate,
        args: aggregate.args.map((arg) => argument.get(shapeOf(arg))!),
      })),
      firstRowShape(i64.add(i64.and(word(count - 1), i64.const(0xFFFFFFFFn)), input(base, "i64"))),
    ],
    base,
  };
}

/**
 * Sets the bit of each record's first row, atomically because other threads may set bits in the same words. Rows are
 * records; cells: records, bitmap.
 */
export function markKernel(memory: WebAssembly.Memory, stride: number): CompiledKernel {
  return kernelCache(memory).get(`mark${stride}`, () => {
    const writer = new KernelWriter(memory, []);
    const { code } = writer;
    const cells: Record<string, number> = { records: writer.cell(), bitmap: writer.cell() };
    cells.count = writer.cellCount;
    const records = writer.loadCell("i32", cells.records), bitmap = writer.loadCell("i32", cells.bitmap);
    const first = code.local("i32");
    writer.scalarRows(undefined, [], (row) => {
      code.get(row).i32(stride).op("i32.mul").get(records).op("i32.add").memory("i32.load", stride - 8).set(first);
      code.get(first).i32(6).op("i32.shr_u").i32(3).op("i32.shl").get(bitmap).op("i32.add");
      code.i64(1n).get(first).op("i64.extend_i32_u").op("i64.shl").memory("i64.atomic.rmw.or").drop();
    });
    code.get(writer.end);
    return { bytes: writer.finish(), cells };
  });
}

/**
 * Counts the bits that are set before each word of the bitmap. Rows are words; cells: bitmap, before; result: the
 * number of all bits.
 */
export function prefixKernel(memory: WebAssembly.Memory): CompiledKernel {
  return kernelCache(memory).get("prefix", () => {
    const writer = new KernelWriter(memory, []);
    const { code } = writer;
    const cells: Record<string, number> = { bitmap: writer.cell(), before: writer.cell() };
    cells.count = writer.cellCount;
    const bitmap = writer.loadCell("i32", cells.bitmap), before = writer.loadCell("i32", cells.before);
    const sum = code.local("i32");
    writer.scalarRows(undefined, [], (row) => {
      code.get(before).get(row).i32(2).op("i32.shl").op("i32.add").get(sum).memory("i32.store");
      code.get(bitmap).get(row).i32(3).op("i32.shl").op("i32.add").memory("i64.load").op("i64.popcnt").op(
        "i32.wrap_i64",
      ).get(sum).op("i32.add").set(sum);
    });
    code.get(sum);
    return { bytes: writer.finish(), cells };
  });
}

/**
 * Writes each record's address to its index in the order of first rows. Rows are records; cells: records, bitmap,
 * before, list.
 */
export function placeKernel(memory: WebAssembly.Memory, stride: number): CompiledKernel {
  return kernelCache(memory).get(`place${stride}`, () => {
    const writer = new KernelWriter(memory, []);
    const { code } = writer;
    const cells: Record<string, number> = {
      records: writer.cell(),
      bitmap: writer.cell(),
      before: writer.cell(),
      list: writer.cell(),
    };
    cells.count = writer.cellCount;
    const [records, bitmap, before, list] = ["records", "bitmap", "before", "list"].map((name) =>
      writer.loadCell("i32", cells[name])
    );
    const first = code.local("i32"), record = code.local("i32"), word = code.local("i32");
    writer.scalarRows(undefined, [], (row) => {
      code.get(row).i32(stride).op("i32.mul").get(records).op("i32.add").tee(record).memory("i32.load", stride - 8).tee(
        first,
      ).i32(6).op("i32.shr_u").set(word);
      code.get(list);
      code.get(before).get(word).i32(2).op("i32.shl").op("i32.add").memory("i32.load");
      code.get(bitmap).get(word).i32(3).op("i32.shl").op("i32.add").memory("i64.load");
      code.i64(1n).get(first).op("i64.extend_i32_u").op("i64.shl").i64(1n).op("i64.sub").op("i64.and").op("i64.popcnt")
        .op("i32.wrap_i64").op("i32.add");
      code.i32(2).op("i32.shl").op("i32.add").get(record).memory("i32.store");
    });
    code.get(writer.end);
    return { bytes: writer.finish(), cells };
  });
}
