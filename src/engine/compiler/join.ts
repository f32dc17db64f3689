/**
 * Kernels of equi-joins. The rows of the build side (right) are found by their keys:
 *
 *     dense    integers of a small range: table[slot] is the first row + 1 of the slot's key, 0 for none
 *     hash     buckets of (first row + 1, tag, key words), open addressing; the first word of a free bucket is 0
 *     next     next[row] is the next row + 1 with the same key, in ascending order; 0 after the last
 *
 * The slot of a dense key is value - low. Two more slots follow: for null, and for values out of range, which is always empty.
 */
import { type CompiledKernel } from "./aggregate.ts";
import { hashOf } from "./hash-groups.ts";
import type { Input } from "./expression.ts";
import { i32, i64, input, type IrNode, select } from "./ir.ts";
import { inputShape, kernelCache, KernelWriter, shapeOf } from "./kernel.ts";
import { isLoadedAhead, lookUpRows } from "./rows-ahead.ts";
import type { Code } from "../../wasm/assembler.ts";

/**
 * One key column. Nodes `low`, `count` (i64) and `step` (i32: number of slots of the following keys) are constants of
 * the kernel.
 */
export interface DenseKey {
  word: IrNode;
  /** The word of null, if it is separate from the values. */
  none: bigint | undefined;
  low: IrNode;
  count: IrNode;
  step: IrNode;
}

export type JoinKey =
  | { kind: "dense"; keys: readonly DenseKey[] }
  | { kind: "hash"; words: readonly IrNode[]; texts: readonly boolean[] };

export function bucketBytes(words: number): number {
  return 8 + 8 * words;
}

function keyShape(key: JoinKey): string {
  return key.kind === "dense"
    ? key.keys.map(({ word, none, low, count, step }) =>
      `${shapeOf(word)}/${none}/${shapeOf(low)}/${shapeOf(count)}/${shapeOf(step)}`
    ).join(",")
    : key.words.map((word, k) => `${shapeOf(word)}${key.texts[k]}`).join(",");
}

/**
 * The least and greatest non-null word. Cells: low, high (initially the greatest and least possible). Result: the
 * number of nulls.
 */
export function rangeKernel(
  memory: WebAssembly.Memory,
  inputs: readonly Input[],
  word: IrNode,
  none: bigint | undefined,
): CompiledKernel {
  return kernelCache(memory).get(`joinRange|${inputShape(inputs)}|${shapeOf(word)}|${none}`, () => {
    const writer = new KernelWriter(memory, inputs);
    const { code } = writer;
    const cells: Record<string, number> = { low: writer.cell(), high: writer.cell() };
    cells.count = writer.cellCount;
    const low = writer.loadCell("i64", cells.low), high = writer.loadCell("i64", cells.high);
    const value = code.local("i64"), nulls = code.local("i32");
    writer.scalarRows(undefined, [word], () => {
      code.block((skip) => {
        writer.lower(word);
        code.set(value);
        if (none !== undefined) {
          code.get(nulls).get(value).i64(none).op("i64.eq").op("i32.add").set(nulls);
          code.get(value).i64(none).op("i64.eq").brIf(skip);
        }
        code.get(value).get(low).get(value).get(low).op("i64.lt_s").op("select").set(low);
        code.get(value).get(high).get(value).get(high).op("i64.gt_s").op("select").set(high);
      });
    });
    writer.storeCell("i64", cells.low, low);
    writer.storeCell("i64", cells.high, high);
    code.get(nulls);
    return { bytes: writer.finish(), cells };
  });
}

/** Finds a key: sets `entryAt` to the address of the word with its first row. */
class Index {
  readonly entryAt: number;
  readonly head: number;
  private readonly table: number;
  private readonly mask: number;
  private readonly tag: number;
  private readonly words: IrNode[];
  private readonly texts: readonly boolean[];
  private readonly slot: IrNode | undefined;

  /** `place`: the tag of a hashed key or the slot of a dense one, if it has been computed before. */
  constructor(
    readonly writer: KernelWriter,
    key: JoinKey,
    cells: Record<string, number>,
    private readonly place?: IrNode,
  ) {
    const { code } = writer;
    this.table = writer.loadCell("i32", cells.table);
    this.mask = writer.loadCell("i32", cells.mask);
    this.entryAt = code.local("i32");
    this.head = code.local("i32");
    this.tag = code.local("i32");
    this.words = key.kind === "hash" ? key.words.map((word) => writer.derive(word)) : [];
    this.texts = key.kind === "hash" ? key.texts : [];
    this.slot = key.kind === "dense" ? place ?? slotOf(writer, key.keys) : undefined;
  }

  /** Inputs of `find`. */
  get nodes(): IrNode[] {
    if (this.slot !== undefined) return [this.slot];
    return this.place === undefined ? this.words : [...this.words, this.place];
  }

  /** Inputs of `find` for a place that is known. */
  get comparedNodes(): IrNode[] {
    return this.words;
  }

  /** Pushes the tag of a hashed key or the slot of a dense one. */
  pushPlace(): void {
    this.writer.lower(this.slot ?? this.place ?? tagOf(this.words, this.texts));
  }

  /** Pushes the address of the first entry of a place on the stack. */
  pushEntry(): Code {
    const { writer: { code } } = this;
    if (this.slot !== undefined) return code.i32(2).op("i32.shl").get(this.table).op("i32.add");
    return this.pushBucket(code.get(this.mask).op("i32.and"));
  }

  /** Pushes the address of the bucket whose number is on the stack. */
  private pushBucket(code: Code): Code {
    return code.i32(bucketBytes(this.words.length)).op("i32.mul").get(this.table).op("i32.add");
  }

  /**
   * Also sets `head`, the word at `entryAt`. If the key is missing, `entryAt` is its free bucket and `head` is 0. `end`: a local with the number
   * of a bucket before which the search ends, by a branch of `beyond`.
   */
  find(end?: number, beyond?: () => void): void {
    this.pushPlace();
    this.findPlace(end, beyond);
  }

  /** Like `find`, with the place on the stack. */
  findPlace(end?: number, beyond?: () => void): void {
    const { writer, entryAt, head, tag, words, texts } = this;
    const { code } = writer;
    if (this.slot !== undefined) {
      this.pushEntry().tee(entryAt).memory("i32.load").set(head);
      return;
    }
    code.tee(tag).set(entryAt);
    const usesTag = this.usesTag, at = code.local("i32");
    code.block((found) =>
      code.loop((again) => {
        code.get(entryAt).get(this.mask).op("i32.and").tee(entryAt);
        this.pushBucket(code).tee(at).memory("i32.load").tee(head).op("i32.eqz").brIf(found);
        code.block((differs) => {
          if (usesTag) code.get(at).memory("i32.load", 4).get(tag).op("i32.ne").brIf(differs);
          words.forEach((word, k) => {
            code.get(at).memory("i64.load", 8 + 8 * k);
            writer.lower(word);
            if (texts[k]) code.call(writer.library.index("text.eq")).op("i32.eqz");
            else code.op("i64.ne");
            code.brIf(differs);
          });
          code.br(found);
        });
        code.get(entryAt).i32(1).op("i32.add").set(entryAt);
        if (end !== undefined) code.get(entryAt).get(end).op("i32.eq").if(() => beyond!());
        code.br(again);
      })
    );
    code.get(at).set(entryAt);
  }

  /** A single number is compared directly, without a tag. */
  private get usesTag(): boolean {
    return this.words.length > 1 || this.texts.some((isText) => isText);
  }

  /** Writes the key into a free bucket. */
  fill(): void {
    const { writer: { code } } = this;
    if (this.usesTag) code.get(this.entryAt).get(this.tag).memory("i32.store", 4);
    this.words.forEach((word, k) => {
      code.get(this.entryAt);
      this.writer.lower(word);
      code.memory("i64.store", 8 + 8 * k);
    });
  }
}

/** Searches for the keys of all rows that pass. `body`: see `KernelWriter.scalarRows`. `cells`: only if entries are prefetched. */
function searchRows(
  index: Index,
  cells: Record<string, number> | undefined,
  predicate: IrNode | undefined,
  body: (row: number) => void,
): void {
  const { writer } = index;
  if (cells === undefined) {
    return writer.scalarRows(predicate, index.nodes, (row) => {
      index.find();
      body(row);
    });
  }
  lookUpRows(writer, { ahead: cells.ahead, loaded: cells.loaded }, {
    predicate,
    nodes: index.nodes,
    pushPlace: () => index.pushPlace(),
    load: () => index.pushEntry().memory("i32.load"),
    body: (row, pushPlace) => {
      writer.loadRow(index.comparedNodes, row);
      pushPlace();
      index.findPlace();
      body(row);
    },
  });
}

/** The lower bits are the number of the key's first bucket. */
function tagOf(words: readonly IrNode[], texts: readonly boolean[]): IrNode {
  return i32.wrap(i64.shrU(hashOf(words, texts), i64.const(32n)));
}

function slotOf(writer: KernelWriter, keys: readonly DenseKey[]): IrNode {
  const parts = keys.map(({ word, none, low, count, step }): IrNode => {
    const value = writer.derive(word);
    const distance = writer.derive(i64.sub(value, low)), nullSlot = i32.wrap(count);
    const inside = select(i64.ltU(distance, count), i32.wrap(distance), i32.add(nullSlot, i32.const(1)));
    return i32.mul(none === undefined ? inside : select(i64.eq(value, i64.const(none)), nullSlot, inside), step);
  });
  return writer.derive(parts.length === 0 ? i32.const(0) : parts.reduce((a, b) => i32.add(a, b)));
}

function address(code: Code, base: number, index: number): Code {
  return code.get(base).get(index).i32(2).op("i32.shl").op("i32.add");
}

/**
 * Inserts rows into an index. Rows 0 … rowCount-1 of the kernel stand for last … last - rowCount + 1, so that the rows
 * of each key are linked in ascending order. Cells: table, mask, next, last, repeated (set to 1 if a key occurs twice).
 */
export function indexKernel(memory: WebAssembly.Memory, inputs: readonly Input[], key: JoinKey): CompiledKernel {
  return kernelCache(memory).get(`joinIndex${key.kind}|${inputShape(inputs)}|${keyShape(key)}`, () => {
    const writer = new KernelWriter(memory, inputs);
    const { code } = writer;
    const cells = cellsOf(writer, ["table", "mask", "next", "last", "repeated"]);
    const next = writer.loadCell("i32", cells.next), last = writer.loadCell("i32", cells.last);
    const repeated = writer.loadCell("i32", cells.repeated);
    const index = new Index(writer, key, cells);
    const at = code.local("i32");
    writer.scalarRows(undefined, [], (row) => {
      code.get(last).get(row).op("i32.sub").set(at);
      writer.loadRow(index.nodes, at);
      index.find();
      code.get(index.head).if(() => code.i32(1).set(repeated), () => index.fill());
      address(code, next, at).get(index.head).memory("i32.store");
      code.get(index.entryAt).get(at).i32(1).op("i32.add").memory("i32.store");
    });
    writer.storeCell("i32", cells.repeated, repeated);
    code.get(writer.end);
    return { bytes: writer.finish(), cells };
  });
}

function cellsOf(writer: KernelWriter, names: readonly string[]): Record<string, number> {
  const cells: Record<string, number> = Object.fromEntries(names.map((name) => [name, writer.cell()]));
  cells.count = writer.cellCount;
  return cells;
}

/**
 * A row that is written for a part of an index: the words of a hashed key, then as i32 its tag, or the slot of a dense key, and the row's
 * number.
 */
export function partRowBytes(key: JoinKey): number {
  return 8 * (key.kind === "hash" ? key.words.length : 0) + 8;
}

/**
 * Distributes the keys of rows to parts of an index: neighbouring buckets or slots, 2 ** shift of them. With `write`, writes rows where `cursors`
 * (one address for each part) point, and advances these; otherwise counts rows there. Cells: cursors, mask (of buckets; all bits for slots),
 * shift.
 */
export function partKeysKernel(
  memory: WebAssembly.Memory,
  inputs: readonly Input[],
  key: JoinKey,
  write: boolean,
): CompiledKernel {
  return kernelCache(memory).get(`joinParts${write}${key.kind}|${inputShape(inputs)}|${keyShape(key)}`, () => {
    const writer = new KernelWriter(memory, inputs);
    const { code } = writer;
    const cells = cellsOf(writer, ["cursors", "mask", "shift"]);
    const [cursors, mask, shift] = ["cursors", "mask", "shift"].map((name) => writer.loadCell("i32", cells[name]));
    const words = key.kind === "hash" ? key.words.map((word) => writer.derive(word)) : [];
    const place = key.kind === "hash" ? writer.derive(tagOf(words, key.texts)) : slotOf(writer, key.keys);
    const cursor = code.local("i32"), at = code.local("i32"), width = partRowBytes(key);
    writer.scalarRows(undefined, [...words, place], (row) => {
      code.get(cursors);
      writer.lower(place);
      code.get(mask).op("i32.and").get(shift).op("i32.shr_u").i32(2).op("i32.shl").op("i32.add").tee(cursor);
      code.memory("i32.load").set(at);
      if (write) {
        words.forEach((word, k) => {
          code.get(at);
          writer.lower(word);
          code.memory("i64.store", 8 * k);
        });
        code.get(at);
        writer.lower(place);
        code.memory("i32.store", width - 8).get(at).get(row).memory("i32.store", width - 4);
      }
      code.get(cursor).get(at).i32(write ? width : 1).op("i32.add").memory("i32.store");
    });
    code.get(writer.end);
    return { bytes: writer.finish(), cells };
  });
}

/**
 * Inserts written rows of a part into an index, like `indexKernel`; `next` has zeros before. Rows that find no bucket before `end` (0: no end)
 * are left: they are moved to the end of the written rows, in their order. All rows of their keys are among them. Cells besides: rows, left
 * (out: their number).
 */
export function partIndexKernel(
  memory: WebAssembly.Memory,
  kind: JoinKey["kind"],
  texts: readonly boolean[],
): { kernel: CompiledKernel; inputs: Input[] } {
  const count = kind === "hash" ? texts.length : 0, width = 8 * count + 8;
  const inputs = Array.from({ length: count + 1 }, (_, k): Input => ({ kind: "word", column: 0, width, k }));
  const kernel = kernelCache(memory).get(`joinPart${kind}${texts}`, () => {
    const writer = new KernelWriter(memory, inputs);
    const { code } = writer;
    const cells = cellsOf(writer, ["table", "mask", "next", "last", "repeated", "rows", "left", "end"]);
    const [next, last, repeated, rows, end] = ["next", "last", "repeated", "rows", "end"].map((name) =>
      writer.loadCell("i32", cells[name])
    );
    const words = texts.map((_, k) => input(k, "i64")), numbers = input(count, "i64");
    const place = writer.derive(i32.wrap(numbers)), number = writer.derive(i32.wrap(i64.shrU(numbers, i64.const(32n))));
    const key: JoinKey = kind === "hash" ? { kind, words, texts } : { kind, keys: [] };
    const index = new Index(writer, key, cells, place), left = code.local("i32");
    const at = code.local("i32"), from = code.local("i32"), to = code.local("i32");
    const addressOf = (row: number, address: number) =>
      code.get(row).i32(width).op("i32.mul").get(rows).op("i32.add").set(address);
    writer.scalarRows(undefined, [], (row) => {
      code.get(last).get(row).op("i32.sub").set(at);
      writer.loadRow([...index.nodes, number], at);
      code.block((done) => {
        index.find(end, () => {
          addressOf(at, from);
          code.get(last).get(left).op("i32.sub").set(to);
          addressOf(to, to);
          for (let k = 0; k <= count; k++) code.get(to).get(from).memory("i64.load", 8 * k).memory("i64.store", 8 * k);
          code.get(left).i32(1).op("i32.add").set(left).br(done);
        });
        code.get(index.head).if(() => {
          code.i32(1).set(repeated).get(next);
          writer.lower(number);
          code.i32(2).op("i32.shl").op("i32.add").get(index.head).memory("i32.store");
        }, () => index.fill());
        code.get(index.entryAt);
        writer.lower(number);
        code.i32(1).op("i32.add").memory("i32.store");
      });
    });
    writer.storeCell("i32", cells.repeated, repeated);
    writer.storeCell("i32", cells.left, left);
    code.get(writer.end);
    return { bytes: writer.finish(), cells };
  });
  return { kernel, inputs };
}

/**
 * Numbers the keys of rows, from 0 on, in order of their first rows. In the index, the number + 1 is in the place of the first row + 1.
 * Cells: table, mask, groups (out: i32 of each row), groupCount (in and out), groupsMax (the capacity of the table); those of `AheadCells`.
 * `tableBytes`: of the largest table. Result: the row to continue with in a larger table, or the end.
 */
export function groupIndexKernel(
  memory: WebAssembly.Memory,
  inputs: readonly Input[],
  key: JoinKey,
  tableBytes: number,
): CompiledKernel {
  const prefetches = isLoadedAhead(tableBytes);
  return kernelCache(memory).get(`joinGroups${prefetches}${key.kind}|${inputShape(inputs)}|${keyShape(key)}`, () => {
    const writer = new KernelWriter(memory, inputs);
    const { code } = writer;
    const cells = cellsOf(writer, ["table", "mask", "groups", "groupCount", "groupsMax", "ahead", "loaded"]);
    const [groups, count, most] = ["groups", "groupCount", "groupsMax"].map((name) =>
      writer.loadCell("i32", cells[name])
    );
    const index = new Index(writer, key, cells), { head } = index;
    searchRows(index, prefetches ? cells : undefined, undefined, (row) => {
      code.get(head).op("i32.eqz").if(() => {
        code.get(count).get(most).op("i32.ge_u").if(() => {
          writer.storeCell("i32", cells.groupCount, count);
          code.get(row).return();
        });
        index.fill();
        code.get(index.entryAt).get(count).i32(1).op("i32.add").tee(count).tee(head).memory("i32.store");
      });
      address(code, groups, row).get(head).i32(1).op("i32.sub").memory("i32.store");
    });
    writer.storeCell("i32", cells.groupCount, count);
    code.get(writer.end);
    return { bytes: writer.finish(), cells };
  });
}

export interface ProbeMode {
  /** No key occurs twice on the build side. */
  unique: boolean;
  /** A left row without a match makes a pair with row -1 … */
  keepsLeft: boolean;
  /** A marker pair ends the matches of every left row. A join condition then determines which pairs are kept. */
  ends: boolean;
  /** Right rows with a match are marked with 1, one byte each. */
  marks: boolean;
}

const PROBE_RESUME = { fresh: 0, atEnd: -1 } as const;

/**
 * Lists the pairs of left and right rows, ordered by left row, then by right row. Cells: table, mask, next, leftRows,
 * rightRows (i32 lists), capacity (of both), pairs (out: their number), resume (in and out: where a left row's matches
 * continue), marks; those of `AheadCells`. Result: the left row to continue with, or the end.
 */
export function probeKernel(
  memory: WebAssembly.Memory,
  inputs: readonly Input[],
  predicate: IrNode | undefined,
  key: JoinKey,
  mode: ProbeMode,
  tableBytes: number,
): CompiledKernel {
  const prefetches = isLoadedAhead(tableBytes);
  const cacheKey = `joinProbe${prefetches}${key.kind}${JSON.stringify(mode)}|${inputShape(inputs)}|${
    predicate ? shapeOf(predicate) : ""
  }|${keyShape(key)}`;
  return kernelCache(memory).get(cacheKey, () => {
    const writer = new KernelWriter(memory, inputs);
    const { code } = writer;
    const names = ["table", "mask", "next", "leftRows", "rightRows", "capacity", "pairs", "resume", "marks"];
    const cells = cellsOf(writer, [...names, "ahead", "loaded"]);
    const [next, leftRows, rightRows, capacity, marks] = ["next", "leftRows", "rightRows", "capacity", "marks"].map((
      name,
    ) => writer.loadCell("i32", cells[name]));
    const resume = writer.loadCell("i32", cells.resume), pairs = code.local("i32");
    const index = new Index(writer, key, cells);
    const { head } = index, right = code.local("i32"), first = code.local("i32");
    const stop = (row: number) => {
      writer.storeCell("i32", cells.pairs, pairs);
      writer.storeCell("i32", cells.resume, resume);
      code.get(row).return();
    };
    /** The pair of `row` with row head - 1, which is -1 for no match. */
    const pair = (row: number) => {
      address(code, leftRows, pairs).get(row).memory("i32.store");
      address(code, rightRows, pairs).get(head).i32(1).op("i32.sub").tee(right).memory("i32.store");
      code.get(pairs).i32(1).op("i32.add").set(pairs);
    };
    const mark = () => {
      if (mode.marks) code.get(marks).get(right).op("i32.add").i32(1).memory("i32.store8");
    };
    const isFull = () => code.get(pairs).get(capacity).op("i32.ge_s");
    const pairsOf = (row: number) => {
      if (mode.unique && !mode.ends) {
        // At most one pair for each row, so there is space for all.
        if (mode.keepsLeft) {
          pair(row);
          if (mode.marks) code.get(head).if(() => mark());
        } else {
          code.get(head).if(() => {
            pair(row);
            mark();
          });
        }
        return;
      }
      code.get(resume).if(() => {
        code.get(resume).i32(0).get(resume).i32(0).op("i32.gt_s").op("select").set(head);
      });
      code.get(head).get(resume).op("i32.or").set(first);
      code.block((noMore) =>
        code.loop((again) => {
          code.get(head).op("i32.eqz").brIf(noMore);
          isFull().if(() => {
            code.get(head).set(resume);
            stop(row);
          });
          pair(row);
          mark();
          address(code, next, right).memory("i32.load").set(head).br(again);
        })
      );
      if (mode.ends || mode.keepsLeft) {
        if (!mode.ends) code.get(first).op("i32.eqz").if(end);
        else end();
      }
      code.i32(0).set(resume);

      function end(): void {
        isFull().if(() => {
          code.i32(mode.ends ? PROBE_RESUME.atEnd : PROBE_RESUME.fresh).set(resume);
          stop(row);
        });
        pair(row);
      }
    };
    searchRows(index, prefetches ? cells : undefined, predicate, pairsOf);
    code.i32(0).set(resume);
    writer.storeCell("i32", cells.pairs, pairs);
    writer.storeCell("i32", cells.resume, resume);
    code.get(writer.end);
    return { bytes: writer.finish(), cells };
  });
}
