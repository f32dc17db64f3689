/**
 * Four rows at once are added to the records of their groups: integers and products are computed in vectors of four rows, and two neighbouring words of a
 * record are added by one addition. That takes fewer instructions than each word of each row by itself. Addresses of the records that are computed
 * in vectors take longer, because each has to be extracted.
 */
import type { KernelWriter } from "./kernel.ts";

export const FOUR = 4;

/** What a row adds to a word of 64 bits: 1, an unsigned integer of a 32-bit column with bits above it, or a product of two integers. */
export type Addend =
  | { kind: "one" }
  | { kind: "column"; input: number; above: bigint }
  /** `leasts`: locals with what is added to the columns' integers first, in all lanes. The sums have 32 bits with their sign. */
  | { kind: "product"; inputs: readonly number[]; leasts: readonly number[] };

/** An addend of the words at these places of a record, in 8 bytes; undefined for a word to which nothing is added. */
type Pair = readonly [Addend | undefined, Addend | undefined];

const LOW_32 = interleaved(4, 0), HIGH_32 = interleaved(4, 2), LOW_64 = interleaved(8, 0), HIGH_64 = interleaved(8, 1);
const HALVES = ["low", "high"] as const;

/** A shuffle that takes lanes of two vectors in turn, from one lane on. */
function interleaved(width: number, from: number): number[] {
  return Array.from({ length: 16 }, (_, byte) => {
    const lane = Math.floor(byte / width), isSecond = lane % 2;
    return 16 * isSecond + (from + Math.floor(lane / 2)) * width + byte % width;
  });
}

export class FourRows {
  private readonly columns = new Map<number, number>();
  private readonly products = new Map<Addend, number[]>();
  private readonly pairs: { at: number; pair: Pair; rows: number[] }[] = [];

  /** `words`: what is added to each word of a record. */
  constructor(private readonly writer: KernelWriter, words: readonly (Addend | undefined)[]) {
    const { code } = writer;
    const vector = () => code.local("v128");
    for (const addend of words) {
      if (addend?.kind === "product") this.products.set(addend, HALVES.map(vector));
      const inputs = addend?.kind === "product" ? addend.inputs : addend?.kind === "column" ? [addend.input] : [];
      for (const input of inputs) if (!this.columns.has(input)) this.columns.set(input, vector());
    }
    for (let k = 0; k < words.length; k += 2) {
      const pair: Pair = [words[k], words[k + 1]];
      if (pair.some((addend) => addend !== undefined)) {
        this.pairs.push({ at: 8 * k, pair, rows: Array.from({ length: FOUR }, vector) });
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

  private loadPair(pair: Pair, rows: readonly number[]): void {
    const { writer: { code } } = this;
    HALVES.forEach((_, half) => {
      const words = pair.map((addend) => {
        const two = code.local("v128");
        this.pushTwo(addend, half);
        code.set(two);
        return two;
      });
      [LOW_64, HIGH_64].forEach((lanes, k) => {
        for (const two of words) code.get(two);
        code.shuffle(lanes).set(rows[2 * half + k]);
      });
    });
  }

  /** Pushes what two rows add to a word. */
  private pushTwo(addend: Addend | undefined, half: number): void {
    const { columns, products, writer: { code } } = this;
    if (addend === undefined) code.splat64(0n);
    else if (addend.kind === "one") code.splat64(1n);
    else if (addend.kind === "product") code.get(products.get(addend)![half]);
    else {
      const above = addend.above >> 32n;
      code.get(columns.get(addend.input)!).splat64(above << 32n | above).shuffle([LOW_32, HIGH_32][half]);
    }
  }

  /** Adds the row of a lane to the record at the address in local `record`. */
  add(lane: number, record: number): void {
    const { writer: { code } } = this;
    for (const { at, rows } of this.pairs) {
      code.get(record).get(record).memory("v128.load", at).get(rows[lane]).op("i64x2.add").memory("v128.store", at);
    }
  }
}
