/** Kernels of grouping by hashed keys: the records are those of `aggregate.ts`, and buckets of (hash, record + 1) find them. */
import {
  aggregateKey,
  type AggregateShape,
  type CompiledKernel,
  type KeyShape,
  Records,
  strideOf,
  withoutArgs,
} from "./aggregate.ts";
import type { ColumnForm, Input } from "./expression.ts";
import { bind, f32, f64, i32, i64, type IrNode, select, text } from "./ir.ts";
import { inputShape, kernelCache, KernelWriter, shapeOf } from "./kernel.ts";
import { type AheadCells, lookUpRows } from "./rows-ahead.ts";

export const BUCKET_BYTES = 8;

interface HashCells {
  buckets: number;
  mask: number;
  records: number;
  groups: number;
  capacity: number;
  arenaNext: number;
  arenaEnd: number;
  /** Output: which resource was exhausted when the kernel stopped early: 1 records, 2 space for texts. */
  wants: number;
  numbers: number;
}

function hashCells(writer: KernelWriter): HashCells & { count: number } {
  const cells = {
    buckets: writer.cell(),
    mask: writer.cell(),
    records: writer.cell(),
    groups: writer.cell(),
    capacity: writer.cell(),
    arenaNext: writer.cell(),
    arenaEnd: writer.cell(),
    wants: writer.cell(),
    numbers: writer.cell(),
  };
  return { ...cells, count: writer.cellCount };
}

export const WANTS = { records: 1, texts: 2 } as const;

class HashTable {
  readonly records: number;
  readonly groups: number;
  private readonly buckets: number;
  private readonly mask: number;
  private readonly capacity: number;
  /** The local of the next free address for texts. */
  readonly arenaNext: number;
  private readonly arenaEnd: number;
  private readonly place: number;
  private readonly bucket: number;
  private readonly hash: number;
  readonly record: number;

  constructor(
    private readonly writer: KernelWriter,
    private readonly cells: HashCells,
    private readonly stride: number,
    private readonly texts: readonly boolean[],
  ) {
    const { code } = writer;
    this.buckets = writer.loadCell("i32", cells.buckets);
    this.mask = writer.loadCell("i32", cells.mask);
    this.records = writer.loadCell("i32", cells.records);
    this.groups = writer.loadCell("i32", cells.groups);
    this.capacity = writer.loadCell("i32", cells.capacity);
    this.arenaNext = writer.loadCell("i32", cells.arenaNext);
    this.arenaEnd = writer.loadCell("i32", cells.arenaEnd);
    this.place = code.local("i32");
    this.bucket = code.local("i64");
    this.hash = code.local("i32");
    this.record = code.local("i32");
  }

  /**
   * Sets `record` to the record of the key `words`. If it is new, `whenNew` fills in what follows the key. `copyTexts`:
   * copies the texts' bytes. `pushHash` pushes the key's hash, if it is known.
   */
  find(
    words: readonly IrNode[],
    row: number,
    copyTexts: boolean,
    whenNew: () => void,
    pushHash = () => this.pushHash(words),
  ): void {
    const { writer } = this;
    const { code } = writer;
    pushHash();
    code.tee(this.hash).get(this.mask).op("i32.and").set(this.place);
    code.block((found) =>
      code.loop((again) => {
        code.get(this.buckets).get(this.place).i32(3).op("i32.shl").op("i32.add").memory("i64.load").tee(this.bucket)
          .op("i64.eqz").if(() => {
            this.insert(words, row, copyTexts, whenNew);
            code.br(found);
          });
        code.get(this.bucket).op("i32.wrap_i64").get(this.hash).op("i32.eq").if(() => {
          code.get(this.bucket).i64(32n).op("i64.shr_u").op("i32.wrap_i64").i32(1).op("i32.sub").i32(this.stride).op(
            "i32.mul",
          ).get(this.records).op("i32.add").set(this.record);
          words.forEach((word, k) => {
            code.get(this.record).memory("i64.load", 8 * k);
            writer.lower(word);
            if (this.texts[k]) code.call(writer.library.index("text.eq"));
            else code.op("i64.eq");
            if (k > 0) code.op("i32.and");
          });
          code.brIf(found);
        });
        code.get(this.place).i32(1).op("i32.add").get(this.mask).op("i32.and").set(this.place).br(again);
      })
    );
  }

  pushHash(words: readonly IrNode[]): void {
    this.writer.lower(i32.wrap(i64.shrU(hashOf(words, this.texts), i64.const(32n))));
  }

  /**
   * Replaces a hash on the stack by the first word of the record of its first bucket, to load the cache lines of both. The record may be another
   * key's; an empty bucket leads to the word before the records.
   */
  loadRecord(): void {
    const { code } = this.writer;
    code.get(this.mask).op("i32.and").i32(3).op("i32.shl").get(this.buckets).op("i32.add").memory("i32.load", 4);
    code.i32(1).op("i32.sub").i32(this.stride).op("i32.mul").get(this.records).op("i32.add").memory("i32.load");
  }

  private insert(words: readonly IrNode[], row: number, copyTexts: boolean, whenNew: () => void): void {
    const { writer } = this;
    const { code } = writer;
    code.get(this.groups).get(this.capacity).op("i32.ge_u").if(() => this.stop(row, WANTS.records));
    if (copyTexts) this.needTexts(this.keyBytes(words), row);
    code.get(this.groups).i32(this.stride).op("i32.mul").get(this.records).op("i32.add").set(this.record);
    words.forEach((word, k) => {
      code.get(this.record);
      if (copyTexts && this.texts[k]) {
        // A null has no bytes; `keyWord` makes its word canonical.
        code.get(this.arenaNext);
        writer.lower(text.address(word));
        writer.lower(text.sizeBytes(word));
        code.memoryCopy();
        code.get(this.arenaNext).op("i64.extend_i32_u");
        writer.lower(i64.and(word, i64.const(-4294967296n)));
        code.op("i64.or");
        writer.lower(word);
        writer.lower(text.isNull(word));
        code.op("i32.eqz").op("select").memory("i64.store", 8 * k);
        code.get(this.arenaNext);
        writer.lower(text.sizeBytes(word));
        code.op("i32.add").set(this.arenaNext);
      } else {
        writer.lower(word);
        code.memory("i64.store", 8 * k);
      }
    });
    whenNew();
    code.get(this.groups).i32(1).op("i32.add").set(this.groups);
    code.get(this.buckets).get(this.place).i32(3).op("i32.shl").op("i32.add");
    code.get(this.hash).op("i64.extend_i32_u").get(this.groups).op("i64.extend_i32_u").i64(32n).op("i64.shl").op(
      "i64.or",
    ).memory("i64.store");
  }

  /** Bytes of the texts of a key. */
  private keyBytes(words: readonly IrNode[]): IrNode[] {
    return words.filter((_, k) => this.texts[k]).map(text.sizeBytes);
  }

  /** Stops before a row if there may be too little memory for texts besides that of its key. `bytes`: of each of them. */
  needTextsBeside(words: readonly IrNode[], bytes: readonly IrNode[], row: number): void {
    if (bytes.length > 0) this.needTexts([...bytes, ...this.keyBytes(words)], row);
  }

  private needTexts(bytes: readonly IrNode[], row: number): void {
    if (bytes.length === 0) return;
    const { writer } = this, { code } = writer;
    code.get(this.arenaEnd).get(this.arenaNext).op("i32.sub");
    writer.lower(bytes.reduce((a, b) => i32.add(a, b)));
    code.op("i32.lt_u").if(() => this.stop(row, WANTS.texts));
  }

  private stop(row: number, wants: number): void {
    const { code } = this.writer;
    const reason = code.local("i32");
    code.i32(wants).set(reason);
    this.writer.storeCell("i32", this.cells.wants, reason);
    this.save();
    code.get(row).return();
  }

  save(): void {
    this.writer.storeCell("i32", this.cells.groups, this.groups);
    this.writer.storeCell("i32", this.cells.arenaNext, this.arenaNext);
  }
}

/** Multiplication carries information upwards, so the upper half is the hash. */
export function hashOf(words: readonly IrNode[], texts: readonly boolean[]): IrNode {
  const odd = i64.const(-0x61C8864680B583EBn);
  const parts = words.map((word, k): IrNode => (texts[k] ? { op: "text.hash", type: "i64", args: [word] } : word));
  // Each step uses the previous result twice, so bind it to a local: otherwise the code doubles with every key.
  const spread = (hash: IrNode, bits: bigint) =>
    bind(hash, (value) => i64.xor(value, i64.shrU(value, i64.const(bits))));
  let hash = i64.mul(parts[0], odd);
  for (const part of parts.slice(1)) hash = i64.mul(i64.xor(spread(hash, 29n), part), odd);
  return i64.mul(spread(hash, 32n), odd);
}

/**
 * Groups rows in a hash table. Result: the end, or the row to continue with after providing what `wants` says. `mayBeLarge`: the
 * table may exceed the caches, see `rows-ahead.ts`; cell `isLarge` says whether it does.
 */
export function hashKernel(
  memory: WebAssembly.Memory,
  inputs: readonly Input[],
  predicate: IrNode | undefined,
  keys: readonly KeyShape[],
  aggregates: readonly AggregateShape[],
  numbers: boolean,
  mayBeLarge = false,
): CompiledKernel {
  const keyText = keys.map((k) => `${k.words.map(shapeOf)}${k.isText}`).join(",");
  const key = `hash${numbers}${mayBeLarge}|${inputShape(inputs)}|${predicate ? shapeOf(predicate) : ""}|${keyText}|${
    aggregateKey(aggregates)
  }`;
  return kernelCache(memory).get(key, () => {
    const writer = new KernelWriter(memory, inputs);
    const { code } = writer;
    const cells: HashCells & Partial<AheadCells & { isLarge: number }> & { count: number } = hashCells(writer);
    const words = keys.flatMap((k) => k.words.map((word) => writer.derive(word)));
    const texts = keys.flatMap((k) => k.words.map(() => k.isText));
    const stride = strideOf(words.length, aggregates);
    const table = new HashTable(writer, cells, stride, texts);
    const records = new Records(writer, aggregates, words.length);
    const numberColumn = numbers ? writer.loadCell("i32", cells.numbers) : -1;
    const add = (row: number, pushHash?: () => void) => {
      table.needTextsBeside(words, records.rowTextBytes, row);
      table.find(words, row, true, () => records.initialise(table.record), pushHash);
      records.update(table.record);
      records.keepTexts(table.record, table.arenaNext);
      if (numbers) {
        code.get(numberColumn).get(row).i32(2).op("i32.shl").op("i32.add");
        code.get(table.record).get(table.records).op("i32.sub").i32(stride).op("i32.div_u").memory("i32.store");
      }
    };
    const addAll = () => writer.scalarRows(predicate, [...words, ...records.nodes], add);
    if (mayBeLarge) {
      const large = { ahead: writer.cell(), loaded: writer.cell(), isLarge: writer.cell() };
      Object.assign(cells, large);
      cells.count = writer.cellCount;
      const addAhead = () =>
        lookUpRows(writer, large, {
          predicate,
          nodes: words,
          pushPlace: () => table.pushHash(words),
          load: () => table.loadRecord(),
          body: (row, pushHash) => {
            writer.loadRow([...words, ...records.nodes], row);
            add(row, pushHash);
          },
        });
      code.get(writer.loadCell("i32", large.isLarge)).if(addAhead, addAll);
    } else addAll();
    table.save();
    code.get(writer.end);
    return { bytes: writer.finish(), cells: cells as unknown as Record<string, number> };
  });
}

/** Merges the groups of a later hash table; texts are not copied. Rows are its records; extra cell: later. */
export function hashMergeKernel(
  memory: WebAssembly.Memory,
  texts: readonly boolean[],
  aggregates: readonly AggregateShape[],
): CompiledKernel {
  return kernelCache(memory).get(`hashMerge|${texts}|${aggregateKey(withoutArgs(aggregates))}`, () => {
    const writer = new KernelWriter(memory, []);
    const { code } = writer;
    const cells = { ...hashCells(writer), later: writer.cell() };
    cells.count = writer.cellCount;
    const later = writer.loadCell("i32", cells.later);
    const stride = strideOf(texts.length, aggregates);
    const table = new HashTable(writer, cells, stride, texts);
    const records = new Records(writer, withoutArgs(aggregates), texts.length);
    const words = texts.map(() => writer.local("i64"));
    const from = code.local("i32"), isNew = code.local("i32");
    writer.scalarRows(undefined, [], (row) => {
      code.get(row).i32(stride).op("i32.mul").get(later).op("i32.add").set(from);
      words.forEach(({ local }, k) => code.get(from).memory("i64.load", 8 * k).set(local));
      code.i32(0).set(isNew);
      table.find(words.map((w) => w.node), row, false, () => {
        code.get(table.record).get(from).i32(stride).memoryCopy();
        code.i32(1).set(isNew);
      });
      code.get(isNew).op("i32.eqz").if(() => {
        records.merge(table.record, from);
        records.takeTexts(table.record, from);
      });
    });
    table.save();
    code.get(writer.end);
    return { bytes: writer.finish(), cells: cells as unknown as Record<string, number> };
  });
}

/**
 * Adds groups of a range to the table of a partition. Rows are buckets of the range's table, which tell the hashes. Records of the partition have
 * the number of their first row after the states of the range's records, which is the last of `aggregates`; texts are copied. Extra cells: list (the
 * buckets), later (the range's records), firstNumber (of these).
 */
export function partMergeKernel(
  memory: WebAssembly.Memory,
  texts: readonly boolean[],
  aggregates: readonly AggregateShape[],
): CompiledKernel {
  return kernelCache(memory).get(`partMerge|${texts}|${aggregateKey(withoutArgs(aggregates))}`, () => {
    const writer = new KernelWriter(memory, []);
    const { code } = writer;
    const cells = { ...hashCells(writer), list: writer.cell(), later: writer.cell(), firstNumber: writer.cell() };
    cells.count = writer.cellCount;
    const [list, later, firstNumber] = [cells.list, cells.later, cells.firstNumber].map((cell) =>
      writer.loadCell("i32", cell)
    );
    const merged = withoutArgs(aggregates.slice(0, -1)), stride = strideOf(texts.length, merged);
    const table = new HashTable(writer, cells, strideOf(texts.length, aggregates), texts);
    const records = new Records(writer, merged, texts.length);
    const words = texts.map(() => writer.local("i64")), hash = writer.local("i32");
    const bucket = code.local("i64"), index = code.local("i32"), from = code.local("i32"), isNew = code.local("i32");
    const key = words.map(({ node }) => node), keyBytes = 8 * texts.length;
    writer.scalarRows(undefined, [], (row) => {
      code.get(list).get(row).i32(3).op("i32.shl").op("i32.add").memory("i64.load").tee(bucket);
      code.op("i32.wrap_i64").set(hash.local);
      code.get(bucket).i64(32n).op("i64.shr_u").op("i32.wrap_i64").i32(1).op("i32.sub").tee(index);
      code.i32(stride).op("i32.mul").get(later).op("i32.add").set(from);
      words.forEach(({ local }, k) => code.get(from).memory("i64.load", 8 * k).set(local));
      code.i32(0).set(isNew);
      table.needTextsBeside(key, records.mergedTextBytes(from), row);
      table.find(key, row, true, () => {
        if (stride > keyBytes) {
          code.get(table.record).i32(keyBytes).op("i32.add").get(from).i32(keyBytes).op("i32.add");
          code.i32(stride - keyBytes).memoryCopy();
        }
        code.get(table.record).get(firstNumber).get(index).op("i32.add").op("i64.extend_i32_u");
        code.memory("i64.store", stride).i32(1).set(isNew);
      }, () => code.get(hash.local));
      code.get(isNew).if(() => records.forgetTexts(table.record), () => records.merge(table.record, from));
      records.mergeTexts(table.record, from, table.arenaNext);
    });
    table.save();
    code.get(writer.end);
    return { bytes: writer.finish(), cells: cells as unknown as Record<string, number> };
  });
}

/** Moves buckets to a larger array. Rows are the old buckets; cells: old, buckets, mask. */
export function rehashKernel(memory: WebAssembly.Memory): CompiledKernel {
  return kernelCache(memory).get("rehash", () => {
    const writer = new KernelWriter(memory, []);
    const { code } = writer;
    const cells: Record<string, number> = { old: writer.cell(), buckets: writer.cell(), mask: writer.cell() };
    cells.count = writer.cellCount;
    const old = writer.loadCell("i32", cells.old),
      buckets = writer.loadCell("i32", cells.buckets),
      mask = writer.loadCell("i32", cells.mask);
    const bucket = code.local("i64"), place = code.local("i32");
    writer.scalarRows(undefined, [], (row) => {
      code.get(old).get(row).i32(3).op("i32.shl").op("i32.add").memory("i64.load").tee(bucket).op("i64.eqz").op(
        "i32.eqz",
      ).if(() => {
        code.get(bucket).op("i32.wrap_i64").get(mask).op("i32.and").set(place);
        code.block((free) =>
          code.loop((again) => {
            code.get(buckets).get(place).i32(3).op("i32.shl").op("i32.add").memory("i64.load").op("i64.eqz").brIf(free);
            code.get(place).i32(1).op("i32.add").get(mask).op("i32.and").set(place).br(again);
          })
        );
        code.get(buckets).get(place).i32(3).op("i32.shl").op("i32.add").get(bucket).memory("i64.store");
      });
    });
    code.get(writer.end);
    return { bytes: writer.finish(), cells };
  });
}

/** The canonical word of a one-word key: -0 is 0, and there is one NaN and one null text. */
export function keyWord(value: IrNode, form: ColumnForm, isText: boolean): IrNode {
  switch (form) {
    case "f64":
      return select(
        f64.ne(value, value),
        i64.const(0x7FF8000000000000n),
        i64.reinterpret(f64.add(value, f64.const(0))),
      );
    case "f32":
      return i64.extendU(
        select(f32.ne(value, value), i32.const(0x7FC00000), i32.reinterpret(f32.add(value, f32.const(0)))),
      );
    case "i64":
      return isText ? select(text.isNull(value), text.null(), value) : value;
    default:
      return i64.extendS(value);
  }
}
