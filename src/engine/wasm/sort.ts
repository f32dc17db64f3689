/**
 * Sorts row numbers by 64-bit keys. An element has one to three keys, compared unsigned, and a row number; keeping further keys in
 * the element avoids fetching them. Elements are distributed to buckets by their key's distance from the least one, and recursively
 * within each bucket, so that a few passes over ever smaller ranges suffice. Small ranges use insertion sort. All steps are stable.
 *
 * Source: McIlroy, Bostic, McIlroy, "Engineering Radix Sort", 1993, for buckets from the most significant digit on.
 */
import { type Code, Module, sharedMemory } from "../../wasm/assembler.ts";

export const BUCKET_BITS_MAX = 11;
export const KEYS_MAX = 3;

export function elementBytes(keys: number): number {
  return 8 * keys + 4;
}

/** Size of the counters for all depths of one call of `order`. */
export function countsBytes(keys: number, rowCount: number): number {
  return keys * 32 * (4 << Math.min(BUCKET_BITS_MAX, Math.max(2, Math.floor(Math.log2(rowCount)) - 2)));
}

/** Source of a row's key: high and low words by row (0 for words that are all 0), or a column of values. */
export type KeySource = [kind: number, address: number, low: number, invert: number];
const SOURCE = { words: 0, i64: 1, f64: 2 } as const;
export const SOURCE_BYTES = 16;

export function wordSource(high: number, low: number): KeySource {
  return [SOURCE.words, high, low, 0];
}

/** NaN sorts last, and -0 equals 0. */
export function columnSource(kind: "i64" | "f64", address: number, descending: boolean): KeySource {
  return [SOURCE[kind], address, 0, descending ? -1 : 0];
}

/** Functions for elements with a fixed number of keys. `key` selects one of them. */
export interface SortFunctions {
  /** Makes elements of the rows in `order`. `sources` has a KeySource for each key. */
  start(elements: number, order: number, rowCount: number, sources: number): void;
  /** Loads other keys into the same elements. */
  load(elements: number, rowCount: number, sources: number): void;
  /** Writes the least and greatest key to `out`. */
  range(key: number, elements: number, rowCount: number, out: number): void;
  /** Adds the number of keys in each bucket, (key - least) >> shift, to `counts`. */
  count(key: number, elements: number, rowCount: number, least: bigint, shift: bigint, counts: number): void;
  /** Moves elements to the addresses in `cursors` for their buckets, and advances the cursors. */
  scatter(key: number, elements: number, rowCount: number, least: bigint, shift: bigint, cursors: number): void;
  /**
   * Like `scatter`, by the first key. The elements' row numbers become their new positions, counted from `base`; these
   * are also written to `places`.
   */
  place(
    elements: number,
    rowCount: number,
    least: bigint,
    shift: bigint,
    cursors: number,
    base: number,
    places: number,
  ): void;
  /**
   * Sorts elements by their keys, and equal ones by further keys: `sources` has the sources for all keys of an element,
   * repeated `left` times. `scratch` is as large as the elements, `counts` has `countsBytes`.
   */
  order(elements: number, scratch: number, rowCount: number, counts: number, sources: number, left: number): void;
  /** Writes the elements' row numbers to `out`. */
  rows(elements: number, rowCount: number, out: number): void;
}

const INSERTED_MAX = 16;

const instances = new WeakMap<WebAssembly.Memory, Map<number, SortFunctions>>();

export function sortFunctions(memory: WebAssembly.Memory, keys: number): SortFunctions {
  let all = instances.get(memory);
  if (all === undefined) instances.set(memory, all = new Map());
  let known = all.get(keys);
  if (known === undefined) {
    const module = new WebAssembly.Module(new Writer(memory, keys).build());
    // deno-lint-ignore no-explicit-any
    const exports = new WebAssembly.Instance(module, { env: { memory } }).exports as any;
    known = {
      ...exports,
      range: (key: number, ...rest: unknown[]) => exports[`range${key}`](...rest),
      count: (key: number, ...rest: unknown[]) => exports[`count${key}`](...rest),
      scatter: (key: number, ...rest: unknown[]) => exports[`scatter${key}`](...rest),
    } as SortFunctions;
    all.set(keys, known);
  }
  return known;
}

function word(code: Code, address: number, index: number): Code {
  return code.get(address).get(index).i32(2).op("i32.shl").op("i32.add");
}

interface Steps {
  range: number;
  count: number;
  scatter: number;
}

class Writer {
  private readonly module: Module;
  private readonly width: number;

  constructor(memory: WebAssembly.Memory, private readonly keys: number) {
    this.module = new Module([sharedMemory(memory)]);
    this.width = elementBytes(keys);
  }

  build(): Uint8Array<ArrayBuffer> {
    this.start();
    const load = this.load();
    const steps = Array.from({ length: this.keys }, (_, key): Steps => ({
      range: this.range(key),
      count: this.count(key),
      scatter: this.scatter(key),
    }));
    this.place();
    const insert = this.insert();
    let sort = -1;
    for (let key = this.keys - 1; key >= 0; key--) sort = this.sort(key, steps[key], insert, sort);
    this.order(load, sort);
    this.rows();
    return this.module.finish();
  }

  /** Runs `body` for each element from `at` to `end`, advancing `at`. */
  private each(code: Code, at: number, end: number, body: () => void): void {
    code.block((done) =>
      code.loop((again) => {
        code.get(at).get(end).op("i32.ge_u").brIf(done);
        body();
        code.get(at).i32(this.width).op("i32.add").set(at).br(again);
      })
    );
  }

  /** Leaves the address after the last element. */
  private endOf(code: Code, elements: number, rowCount: number): Code {
    return code.get(rowCount).i32(this.width).op("i32.mul").get(elements).op("i32.add");
  }

  private copyElement(code: Code, from: number, to: number): void {
    for (let key = 0; key < this.keys; key++) {
      code.get(to).get(from).memory("i64.load", 8 * key).memory("i64.store", 8 * key);
    }
    code.get(to).get(from).memory("i32.load", 8 * this.keys).memory("i32.store", 8 * this.keys);
  }

  /** Returns a function that stores the keys of `row`. `sources` are read once, before the loop. */
  private keyWriter(code: Code, sources: number): (element: number, row: number) => void {
    const all = Array.from({ length: this.keys }, (_, key) =>
      [0, 4, 8, 12].map((offset) => {
        const part = code.local("i32");
        code.get(sources).memory("i32.load", SOURCE_BYTES * key + offset).set(part);
        return part;
      }));
    const value = code.local("f64"), bits = code.local("i64");
    const half = (address: number, row: number) =>
      code.get(address).if(() => word(code, address, row).memory("i64.load32_u"), () => code.i64(0n), "i64");
    const at = (address: number, row: number) => code.get(address).get(row).i32(3).op("i32.shl").op("i32.add");
    return (element, row) => {
      all.forEach(([kind, address, low, invert], key) => {
        code.get(element);
        code.get(kind).op("i32.eqz").if(
          () => {
            half(address, row).i64(32n).op("i64.shl");
            half(low, row).op("i64.or");
          },
          () => {
            code.get(kind).i32(SOURCE.i64).op("i32.eq").if(
              () => at(address, row).memory("i64.load").i64(-(1n << 63n)).op("i64.xor"),
              () => {
                at(address, row).memory("f64.load").set(value);
                code.i64((1n << 63n) - 1n).get(value).f64(0).op("f64.add").op("i64.reinterpret_f64");
                code.get(value).get(value).op("f64.ne").op("select").tee(bits);
                // Negative values are inverted, and sort before the others.
                code.get(bits).i64(63n).op("i64.shr_s").i64(-(1n << 63n)).op("i64.or").op("i64.xor");
              },
              "i64",
            );
          },
          "i64",
        );
        code.get(invert).op("i64.extend_i32_s").op("i64.xor").memory("i64.store", 8 * key);
      });
    };
  }

  private start(): void {
    const { code } = this.module.function(["i32", "i32", "i32", "i32"], [], "start");
    const [elements, order, rowCount, sources] = [0, 1, 2, 3];
    const end = code.local("i32"), row = code.local("i32");
    const write = this.keyWriter(code, sources);
    this.endOf(code, elements, rowCount).set(end);
    this.each(code, elements, end, () => {
      code.get(order).memory("i32.load").set(row);
      write(elements, row);
      code.get(elements).get(row).memory("i32.store", 8 * this.keys);
      code.get(order).i32(4).op("i32.add").set(order);
    });
  }

  private load(): number {
    const { code, index } = this.module.function(["i32", "i32", "i32"], [], "load");
    const [elements, rowCount, sources] = [0, 1, 2];
    const end = code.local("i32"), row = code.local("i32");
    const write = this.keyWriter(code, sources);
    this.endOf(code, elements, rowCount).set(end);
    this.each(code, elements, end, () => {
      code.get(elements).memory("i32.load", 8 * this.keys).set(row);
      write(elements, row);
    });
    return index;
  }

  private range(key: number): number {
    const { code, index } = this.module.function(["i32", "i32", "i32"], [], `range${key}`);
    const [elements, rowCount, out] = [0, 1, 2];
    const end = code.local("i32"), value = code.local("i64"), least = code.local("i64"), most = code.local("i64");
    code.i64(-1n).set(least);
    this.endOf(code, elements, rowCount).set(end);
    this.each(code, elements, end, () => {
      code.get(elements).memory("i64.load", 8 * key).set(value);
      code.get(value).get(least).get(value).get(least).op("i64.lt_u").op("select").set(least);
      code.get(value).get(most).get(value).get(most).op("i64.gt_u").op("select").set(most);
    });
    code.get(out).get(least).memory("i64.store");
    code.get(out).get(most).memory("i64.store", 8);
    return index;
  }

  /** Leaves the address of the bucket's counter in `counts`. */
  private bucket(code: Code, key: number, element: number, least: number, shift: number, counts: number): Code {
    code.get(element).memory("i64.load", 8 * key).get(least).op("i64.sub").get(shift).op("i64.shr_u");
    return code.op("i32.wrap_i64").i32(2).op("i32.shl").get(counts).op("i32.add");
  }

  private count(key: number): number {
    const { code, index } = this.module.function(["i32", "i32", "i64", "i64", "i32"], [], `count${key}`);
    const [elements, rowCount, least, shift, counts] = [0, 1, 2, 3, 4];
    const end = code.local("i32"), at = code.local("i32");
    this.endOf(code, elements, rowCount).set(end);
    this.each(code, elements, end, () => {
      this.bucket(code, key, elements, least, shift, counts).tee(at);
      code.get(at).memory("i32.load").i32(1).op("i32.add").memory("i32.store");
    });
    return index;
  }

  private scatter(key: number): number {
    const { code, index } = this.module.function(["i32", "i32", "i64", "i64", "i32"], [], `scatter${key}`);
    const [elements, rowCount, least, shift, cursors] = [0, 1, 2, 3, 4];
    const end = code.local("i32"), at = code.local("i32"), to = code.local("i32");
    this.endOf(code, elements, rowCount).set(end);
    this.each(code, elements, end, () => {
      this.bucket(code, key, elements, least, shift, cursors).tee(at).memory("i32.load").set(to);
      this.copyElement(code, elements, to);
      code.get(at).get(to).i32(this.width).op("i32.add").memory("i32.store");
    });
    return index;
  }

  private place(): void {
    const { code } = this.module.function(["i32", "i32", "i64", "i64", "i32", "i32", "i32"], [], "place");
    const [elements, rowCount, least, shift, cursors, base, places] = [0, 1, 2, 3, 4, 5, 6];
    const end = code.local("i32"), at = code.local("i32"), to = code.local("i32"), place = code.local("i32");
    this.endOf(code, elements, rowCount).set(end);
    this.each(code, elements, end, () => {
      this.bucket(code, 0, elements, least, shift, cursors).tee(at).memory("i32.load").set(to);
      code.get(to).get(base).op("i32.sub").i32(this.width).op("i32.div_u").set(place);
      code.get(elements).get(place).memory("i32.store", 8 * this.keys);
      this.copyElement(code, elements, to);
      code.get(places).get(place).memory("i32.store");
      code.get(places).i32(4).op("i32.add").set(places);
      code.get(at).get(to).i32(this.width).op("i32.add").memory("i32.store");
    });
  }

  private insert(): number {
    const { code, index } = this.module.function(["i32", "i32"], []);
    const [elements, rowCount] = [0, 1];
    const end = code.local("i32"), next = code.local("i32"), at = code.local("i32"), before = code.local("i32");
    const keys = Array.from({ length: this.keys }, () => code.local("i64")), row = code.local("i32");
    const other = code.local("i64");
    this.endOf(code, elements, rowCount).set(end);
    code.get(elements).i32(this.width).op("i32.add").set(next);
    this.each(code, next, end, () => {
      keys.forEach((key, k) => code.get(next).memory("i64.load", 8 * k).set(key));
      code.get(next).memory("i32.load", 8 * this.keys).set(row);
      code.get(next).set(at);
      code.block((found) =>
        code.loop((again) => {
          code.get(at).get(elements).op("i32.le_u").brIf(found);
          code.get(at).i32(this.width).op("i32.sub").set(before);
          code.block((behind) => {
            keys.forEach((key, k) => {
              code.get(before).memory("i64.load", 8 * k).tee(other).get(key).op("i64.gt_u").brIf(behind);
              if (k < keys.length - 1) code.get(other).get(key).op("i64.lt_u").brIf(found);
            });
            code.br(found);
          });
          this.copyElement(code, before, at);
          code.get(before).set(at).br(again);
        })
      );
      keys.forEach((key, k) => code.get(at).get(key).memory("i64.store", 8 * k));
      code.get(at).get(row).memory("i32.store", 8 * this.keys);
    });
    return index;
  }

  /** Sorts by `key` and the following ones; `further` sorts by the following ones. */
  private sort(key: number, { range, count, scatter }: Steps, insert: number, further: number): number {
    const { code, index } = this.module.function(["i32", "i32", "i32", "i32"], []);
    const [elements, scratch, rowCount, counts] = [0, 1, 2, 3];
    const least = code.local("i64"), span = code.local("i64"), shift = code.local("i64");
    const bits = code.local("i32"), at = code.local("i32"), end = code.local("i32"), sum = code.local("i32");
    const from = code.local("i32"), size = code.local("i32");
    const isLast = key === this.keys - 1;
    code.get(rowCount).i32(INSERTED_MAX).op("i32.le_s").if(() =>
      code.get(elements).get(rowCount).call(insert).return()
    );
    code.get(elements).get(rowCount).get(counts).call(range);
    code.get(counts).memory("i64.load").set(least);
    code.get(counts).memory("i64.load", 8).get(least).op("i64.sub").tee(span).op("i64.eqz").if(() => {
      if (!isLast) code.get(elements).get(scratch).get(rowCount).get(counts).call(further);
      code.return();
    });
    // About four elements in each bucket.
    code.i32(29).get(rowCount).op("i32.clz").op("i32.sub").tee(bits);
    code.i32(BUCKET_BITS_MAX).get(bits).i32(BUCKET_BITS_MAX).op("i32.lt_s").op("select").set(bits);
    code.i64(64n).get(span).op("i64.clz").op("i64.sub").get(bits).op("i64.extend_i32_u").op("i64.sub").tee(shift);
    code.i64(0n).get(shift).i64(0n).op("i64.gt_s").op("select").set(shift);
    // Count, then compute where each bucket starts.
    code.get(span).get(shift).op("i64.shr_u").op("i32.wrap_i64").i32(1).op("i32.add").i32(2).op("i32.shl");
    code.get(counts).op("i32.add").set(end);
    const buckets = (body: () => void) => {
      code.get(counts).set(at);
      code.loop((again) => {
        body();
        code.get(at).i32(4).op("i32.add").tee(at).get(end).op("i32.lt_u").brIf(again);
      });
    };
    buckets(() => code.get(at).i32(0).memory("i32.store"));
    code.get(elements).get(rowCount).get(least).get(shift).get(counts).call(count);
    code.get(scratch).set(sum);
    buckets(() => {
      code.get(at).memory("i32.load").i32(this.width).op("i32.mul").set(size);
      code.get(at).get(sum).memory("i32.store");
      code.get(sum).get(size).op("i32.add").set(sum);
    });
    code.get(elements).get(rowCount).get(least).get(shift).get(counts).call(scatter);
    code.get(elements).get(scratch).get(rowCount).i32(this.width).op("i32.mul").memoryCopy();
    if (isLast) code.get(shift).op("i64.eqz").if(() => code.return());
    // Each cursor is now at its bucket's end.
    code.get(scratch).set(from);
    buckets(() => {
      code.get(at).memory("i32.load").tee(sum).get(from).op("i32.sub").i32(this.width).op("i32.div_u").tee(size);
      code.i32(1).op("i32.gt_u").if(() => {
        code.get(from).get(scratch).op("i32.sub").get(elements).op("i32.add");
        code.get(from).get(size).get(counts).i32(4).get(bits).op("i32.shl").op("i32.add").call(index);
      });
      code.get(sum).set(from);
    });
    return index;
  }

  private order(load: number, sort: number): void {
    const { code, index } = this.module.function(["i32", "i32", "i32", "i32", "i32", "i32"], [], "order");
    const [elements, scratch, rowCount, counts, sources, left] = [0, 1, 2, 3, 4, 5];
    const end = code.local("i32"), from = code.local("i32"), to = code.local("i32"), size = code.local("i32");
    code.get(elements).get(scratch).get(rowCount).get(counts).call(sort);
    code.get(left).op("i32.eqz").if(() => code.return());
    this.endOf(code, elements, rowCount).set(end);
    code.get(elements).set(from);
    code.block((done) =>
      code.loop((next) => {
        code.get(from).get(end).op("i32.ge_u").brIf(done);
        code.get(from).set(to);
        code.block((differs) =>
          code.loop((again) => {
            code.get(to).i32(this.width).op("i32.add").tee(to).get(end).op("i32.ge_u").brIf(differs);
            for (let key = 0; key < this.keys; key++) {
              code.get(to).memory("i64.load", 8 * key).get(from).memory("i64.load", 8 * key).op("i64.ne").brIf(differs);
            }
            code.br(again);
          })
        );
        code.get(to).get(from).op("i32.sub").i32(this.width).op("i32.div_u").tee(size).i32(1).op("i32.gt_u").if(() => {
          code.get(from).get(size).get(sources).call(load);
          code.get(from).get(from).get(elements).op("i32.sub").get(scratch).op("i32.add").get(size).get(counts);
          code.get(sources).i32(SOURCE_BYTES * this.keys).op("i32.add").get(left).i32(1).op("i32.sub").call(index);
        });
        code.get(to).set(from).br(next);
      })
    );
  }

  private rows(): void {
    const { code } = this.module.function(["i32", "i32", "i32"], [], "rows");
    const [elements, rowCount, out] = [0, 1, 2];
    const end = code.local("i32");
    this.endOf(code, elements, rowCount).set(end);
    this.each(code, elements, end, () => {
      code.get(out).get(elements).memory("i32.load", 8 * this.keys).memory("i32.store");
      code.get(out).i32(4).op("i32.add").set(out);
    });
  }
}
