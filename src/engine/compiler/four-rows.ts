/**
 * Four rows at once are added to the records of their groups: the records' addresses, integers and products are computed in vectors of four rows,
 * and two neighbouring words of a record are added by one addition. That takes fewer instructions, and fewer accesses to memory, each of which
 * the runtime checks by four more. Addresses are extracted two at a time.
 */
import { FIRST_PAIRS, lanesOf, LAST_PAIRS } from "../../wasm/shuffles.ts";
import type { DenseKey } from "./aggregate.ts";
import type { Input } from "./expression.ts";
import type { KernelWriter } from "./kernel.ts";

export const FOUR = 4;

/** What a row adds to a word of 64 bits: 1; a 32-bit column's unsigned integer, with `above` as the word's upper half; or a product of two integers. */
export type Addend =
  | { kind: "one" }
  | { kind: "column"; input: number; above: number }
  /** `leasts`: locals with what is added to the columns' integers first, in all lanes. The sums have 32 bits with their sign. */
  | { kind: "product"; inputs: readonly number[]; leasts: readonly number[] };

/** The addends of two neighbouring words; undefined for a word to which nothing is added. */
type Pair = readonly [Addend | undefined, Addend | undefined];

/** The first, and the last, lanes of 64 bits of two vectors. */
const FIRST_WORDS = lanesOf(8, [0, 2]), LAST_WORDS = lanesOf(8, [1, 3]);
const HALVES = ["low", "high"] as const;

export class FourRows {
  private readonly columns = new Map<number, number>();
  private readonly products = new Map<Addend, number[]>();
  /** Upper halves of words, in all lanes. V8 would make a constant of the loop again for each use. */
  private readonly aboves = new Map<number, number>();
  /** `rows`: what each row adds; of two rows, if only the first word of a pair is added to. */
  private readonly pairs: { at: number; pair: Pair; rows: number[] }[] = [];

  /** `words`: what is added to each word of a record. */
  constructor(private readonly writer: KernelWriter, words: readonly (Addend | undefined)[]) {
    const { code } = writer;
    const vector = () => code.local("v128");
    for (const addend of words) {
      if (addend?.kind === "product") this.products.set(addend, HALVES.map(vector));
      if (addend?.kind === "column" && !this.aboves.has(addend.above)) {
        const local = vector();
        code.splat32(addend.above).set(local);
        this.aboves.set(addend.above, local);
      }
      const inputs = addend?.kind === "product" ? addend.inputs : addend?.kind === "column" ? [addend.input] : [];
      for (const input of inputs) if (!this.columns.has(input)) this.columns.set(input, vector());
    }
    for (let k = 0; k < words.length; k += 2) {
      const pair: Pair = [words[k], words[k + 1]];
      if (pair.some((addend) => addend !== undefined)) {
        const count = pair[1] === undefined ? HALVES.length : FOUR;
        this.pairs.push({ at: 8 * k, pair, rows: Array.from({ length: count }, vector) });
      }
    }
  }

  /** Computes what the rows from `row + ahead` on add. */
  load(row: number, ahead: number): void {
    const { writer, columns, products, pairs } = this, { code } = writer;
    for (const [input, local] of columns) {
      writer.pushFour(input, row, ahead);
      code.set(local);
    }
    for (const [addend, locals] of products) {
      if (addend.kind !== "product") continue;
      const integers = addend.inputs.map((input, k) => {
        const local = code.local("v128");
        code.get(columns.get(input)!).get(addend.leasts[k]).op("i32x4.add").set(local);
        return local;
      });
      HALVES.forEach((half, k) => {
        for (const local of integers) code.get(local);
        code.op(`i64x2.extmul_${half}_i32x4_s`).set(locals[k]);
      });
    }
    for (const { pair, rows } of pairs) this.loadPair(pair, rows);
  }

  private loadPair([first, second]: Pair, rows: readonly number[]): void {
    const { writer: { code } } = this;
    if (second === undefined) {
      HALVES.forEach((_, half) => {
        this.pushTwo(first, half);
        code.set(rows[half]);
      });
      return;
    }
    HALVES.forEach((_, half) => {
      const words = [first, second].map((addend) => {
        const two = code.local("v128");
        this.pushTwo(addend, half);
        code.set(two);
        return two;
      });
      [FIRST_WORDS, LAST_WORDS].forEach((lanes, k) => {
        for (const two of words) code.get(two);
        code.shuffle(lanes).set(rows[2 * half + k]);
      });
    });
  }

  /** Pushes what two rows add to a word. */
  private pushTwo(addend: Addend | undefined, half: number): void {
    const { columns, products, aboves, writer: { code } } = this;
    if (addend === undefined) code.splat64(0n);
    else if (addend.kind === "one") code.splat64(1n);
    else if (addend.kind === "product") code.get(products.get(addend)![half]);
    else {
      code.get(columns.get(addend.input)!).get(aboves.get(addend.above)!).shuffle([FIRST_PAIRS, LAST_PAIRS][half]);
    }
  }

  /** Adds the row of a lane to the record at the address in local `record`. */
  add(lane: number, record: number): void {
    const { writer: { code } } = this;
    for (const { at, pair: [, second], rows } of this.pairs) {
      code.get(record).get(record);
      if (second === undefined) {
        code.memory("i64.load", at).get(rows[lane >> 1]).lane("i64x2.extract_lane", lane & 1);
        code.op("i64.add").memory("i64.store", at);
      } else code.memory("v128.load", at).get(rows[lane]).op("i64x2.add").memory("v128.store", at);
    }
  }
}

/** The addresses of the records of four rows in a table of records by group number (`groupNumber`). */
export class FourRecords {
  private readonly factors: number[];
  private readonly base: number;
  private readonly addresses: number;
  private readonly two: number;

  /** `table`: the local with the table's address. Undefined if a key is not a column of 32 bits. */
  static of(
    writer: KernelWriter,
    inputs: readonly Input[],
    keys: readonly DenseKey[],
    table: number,
    stride: number,
  ): FourRecords | undefined {
    const columns = keys.map(({ node }) => node.op === "input" ? node.value as number : -1);
    const isPlain = columns.every((column) => {
      const spec = inputs[column];
      return spec?.kind === "column" && spec.form === "i32";
    });
    return isPlain ? new FourRecords(writer, columns, keys, table, stride) : undefined;
  }

  private constructor(
    private readonly writer: KernelWriter,
    private readonly columns: readonly number[],
    keys: readonly DenseKey[],
    table: number,
    stride: number,
  ) {
    const { code } = writer, factor = code.local("i32"), first = code.local("i32");
    this.factors = keys.map(() => code.local("v128"));
    this.base = code.local("v128");
    this.addresses = code.local("v128");
    this.two = code.local("i64");
    code.i32(stride).set(factor).get(table).set(first);
    for (let k = keys.length - 1; k >= 0; k--) {
      code.get(factor).op("i32x4.splat").set(this.factors[k]);
      code.get(first).get(factor).i32(keys[k].bias).op("i32.mul").op("i32.add").set(first);
      code.get(factor);
      writer.lower(keys[k].size);
      code.op("i32.mul").set(factor);
    }
    code.get(first).op("i32x4.splat").set(this.base);
  }

  /** Computes the addresses of the rows from `row + ahead` on. */
  load(row: number, ahead: number): void {
    const { writer, columns, factors, base, addresses } = this, { code } = writer;
    code.get(base);
    columns.forEach((column, k) => {
      writer.pushFour(column, row, ahead);
      code.get(factors[k]).op("i32x4.mul").op("i32x4.add");
    });
    code.set(addresses);
  }

  /** Sets local `record` to the address of a lane's record. Lanes are asked for in their order. */
  set(record: number, lane: number): void {
    const { addresses, two, writer: { code } } = this;
    if (lane % 2 === 0) {
      code.get(addresses).lane("i64x2.extract_lane", lane / 2).tee(two).op("i32.wrap_i64").set(record);
    } else code.get(two).i64(32n).op("i64.shr_u").op("i32.wrap_i64").set(record);
  }
}
