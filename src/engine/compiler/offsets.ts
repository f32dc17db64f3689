/**
 * Kernels of GROUP BY over the offsets of packed chunks (`ChunkOffsets`). They add up integers in a table of one segment, which is then merged
 * into the dense table of the groups. A record of the segment's table has words of 8 bytes:
 *
 *     rows        number of rows; if the kernel is joined, from bit 40 on, and the sum of the first argument's offsets below
 *     sums        of each argument its offsets, or the products of its integers; the first argument is the last. An even number with `rows`
 *     arguments   of each: number of values, least and greatest offset
 *     states      of aggregates that offsets do not give
 */
import type { RowsSummary } from "../../sql/functions/entry.ts";
import {
  aggregateKey,
  type AggregateShape,
  type CompiledKernel,
  denseKernel,
  type DenseKey,
  groupNumber,
  Records,
  statesOf,
  strideOf,
  withoutArgs,
} from "./aggregate.ts";
import type { ChunkOffsets } from "../../storage/contract.ts";
import type { BoundKernel } from "./binding.ts";
import type { Input } from "./expression.ts";
import { type Addend, FOUR, FourRecords, FourRows } from "./four-rows.ts";
import { f32, f64, i32, i64, input, type IrNode, select } from "./ir.ts";
import { inputShape, kernelCache, KernelWriter, shapeOf } from "./kernel.ts";

/** The sums of joined words and the row count take this many bits and the others. */
export const JOINED_SHIFT = 40;
const JOINED_ROW = 1n << BigInt(JOINED_SHIFT);
const ROWS_AT_ONCE = 8;
const ARGUMENT_WORDS = ["values", "min", "max"] as const;
export const NO_MIN = 2n ** 40n, NO_MAX = -1n;

/** A column whose offsets are read. */
export interface OffsetsColumn {
  /** The input with its offsets. */
  input: number;
  /** What its integers stand for. */
  values: "integers" | "f32" | "f64";
}

/** Values whose integers are added up. */
export interface OffsetsArgument {
  /** Places in the list of columns: of one column, or of the two factors of a product. */
  columns: readonly number[];
  /** What aggregates ask for, besides the number of values. A product has no extremes. */
  needs: Readonly<Record<"sum" | "min" | "max", boolean>>;
}

/** Aggregates of which some are given by the offsets of columns. */
export interface OffsetsShape {
  columns: readonly OffsetsColumn[];
  arguments: readonly OffsetsArgument[];
  aggregates: readonly AggregateShape[];
  /** For each aggregate: its argument; "rows" without one; "states": it sees the rows. */
  sources: readonly (number | "rows" | "states")[];
  /** Words of a group's record before its states. */
  headerWords: 0 | 1;
}

/** How the offsets of a segment are added up. */
export interface OffsetsVariant {
  /** For each argument. */
  hasNulls: readonly boolean[];
  isJoined: boolean;
  /** The integers of factors of products have 32 bits. */
  isNarrow: boolean;
}

export function isProduct({ columns }: Pick<OffsetsArgument, "columns">): boolean {
  return columns.length > 1;
}

/** The places of the columns that are factors of products. */
export function factorsOf(list: readonly Pick<OffsetsArgument, "columns">[]): number[] {
  return [...new Set(list.filter(isProduct).flatMap(({ columns }) => columns))];
}

/** `offsets`: of the columns. */
export function hasNulls({ columns }: Pick<OffsetsArgument, "columns">, offsets: readonly ChunkOffsets[]): boolean {
  return columns.some((column) => offsets[column]!.hasNulls);
}

/** The number of rows whose products, of all arguments, have sums that 64 bits hold. */
export function rowsOfExactSums(
  { arguments: list }: Pick<OffsetsShape, "arguments">,
  offsets: readonly ChunkOffsets[],
): number {
  let rows = Infinity;
  for (const argument of list) {
    if (!isProduct(argument)) continue;
    let greatest = 1;
    for (const column of argument.columns) greatest *= greatestInteger(offsets[column]!);
    rows = Math.min(rows, Math.floor(2 ** 62 / greatest));
  }
  return rows;
}

/** The greatest magnitude of a chunk's integers, or more. */
function greatestInteger({ least, greatest }: ChunkOffsets): number {
  return Math.max(Math.abs(least), Math.abs(least + greatest));
}

/** True if the integers of all these columns have 32 bits. */
export function areNarrow(places: readonly number[], offsets: readonly ChunkOffsets[]): boolean {
  for (const place of places) if (greatestInteger(offsets[place]!) >= 2 ** 31) return false;
  return true;
}

/** Words of a record for the number of rows and the sums of this many arguments. */
function sumWords(argumentCount: number): number {
  return 2 * Math.ceil((1 + argumentCount) / 2);
}

/** The place in a record of one of this many arguments' words, in bytes. */
export function argumentWord(
  argumentCount: number,
  argument: number,
  word: "sum" | typeof ARGUMENT_WORDS[number],
): number {
  if (word === "sum") return 8 * (argument === 0 ? argumentCount : argument);
  return 8 * (sumWords(argumentCount) + argument * ARGUMENT_WORDS.length + ARGUMENT_WORDS.indexOf(word));
}

function byStates({ aggregates, sources }: OffsetsShape): AggregateShape[] {
  return aggregates.filter((_, k) => sources[k] === "states");
}

function segmentHeaderWords(shape: OffsetsShape): number {
  return sumWords(shape.arguments.length) + shape.arguments.length * ARGUMENT_WORDS.length;
}

/** Bytes of a record of the segment's table. */
export function offsetsStride(shape: OffsetsShape): number {
  return 16 * Math.ceil(strideOf(segmentHeaderWords(shape), byStates(shape)) / 16);
}

function keyOf({ columns, arguments: list, aggregates, sources, headerWords }: OffsetsShape): string {
  const columnKeys = columns.map(({ input, values }) => `${input}${values}`);
  const argumentKeys = list.map(({ columns, needs }) => `${columns.join("*")}${Object.values(needs)}`);
  return `${headerWords}|${columnKeys}|${argumentKeys}|${sources}|${aggregateKey(aggregates)}`;
}

/**
 * Adds rows to the segment's table. Cells: `table`: its address; `least…`: of the factors of products, the least integers (f64). If no argument has nulls
 * and the integers of products have 32 bits, four rows are added at once.
 */
export function addOffsetsKernel(
  memory: WebAssembly.Memory,
  inputs: readonly Input[],
  keys: readonly DenseKey[],
  shape: OffsetsShape,
  { hasNulls, isJoined, isNarrow }: OffsetsVariant,
): CompiledKernel {
  const keyText = keys.map((k) => `${shapeOf(k.node)}+${k.bias}*${shapeOf(k.size)}`).join(",");
  const key = `offsets${isJoined}${isNarrow}${hasNulls}|${inputShape(inputs)}|${keyText}|${keyOf(shape)}`;
  return kernelCache(memory).get(key, () => {
    const writer = new KernelWriter(memory, inputs), { code } = writer, { arguments: list } = shape;
    const cells: Record<string, number> = { table: writer.cell() };
    const table = writer.loadCell("i32", cells.table);
    const records = new Records(writer, byStates(shape), segmentHeaderWords(shape));
    const number = writer.derive(groupNumber(keys)), slot = code.local("i32"), offset = code.local("i64");
    const columns = shape.columns.map((column) => input(column.input, "i32"));
    const leasts = new Map(
      factorsOf(list).map((column) => {
        const cell = cells[`least${column}`] = writer.cell();
        const least = code.local("i64");
        code.get(writer.loadCell("f64", cell)).op("i64.trunc_sat_f64_s").set(least);
        return [column, least];
      }),
    );
    cells.count = writer.cellCount;
    const add = (at: number, push: () => void) => {
      code.get(slot).get(slot).memory("i64.load", at);
      push();
      code.op("i64.add").memory("i64.store", at);
    };
    // Few rows have a new extreme.
    const keep = (at: number, comparison: string) => {
      code.get(offset).get(slot).memory("i64.load", at).op(comparison).if(() => {
        code.get(slot).get(offset).memory("i64.store", at);
      });
    };
    const keepExtremes = ({ needs }: OffsetsArgument, k: number) => {
      if (needs.min) keep(argumentWord(list.length, k, "min"), "i64.lt_s");
      if (needs.max) keep(argumentWord(list.length, k, "max"), "i64.gt_s");
    };
    const addArgument = (argument: OffsetsArgument, k: number) => {
      const { needs } = argument, read = argument.columns.map((column) => columns[column]);
      const sumAt = argumentWord(list.length, k, "sum");
      if (isProduct(argument)) {
        if (needs.sum) {
          add(sumAt, () =>
            argument.columns.forEach((column, at) => {
              writer.lower(i64.extendU(read[at]));
              code.get(leasts.get(column)!).op("i64.add");
              if (at > 0) code.op("i64.mul");
            }));
        }
      } else {
        writer.lower(i64.extendU(read[0]));
        code.set(offset);
        if (isJoined && k === 0) add(0, () => code.get(offset).i64(JOINED_ROW).op("i64.or"));
        else if (needs.sum) add(sumAt, () => code.get(offset));
        keepExtremes(argument, k);
      }
      if (hasNulls[k]) add(argumentWord(list.length, k, "values"), () => code.i64(1n));
    };
    const findSlot = () => {
      code.get(table);
      writer.lower(number);
      code.i32(offsetsStride(shape)).op("i32.mul").op("i32.add").set(slot);
    };
    const addRow = (row: number, ahead: number) => {
      writer.loadRow([number, ...columns, ...records.nodes], row, undefined, ahead);
      findSlot();
      if (!isJoined) add(0, () => code.i64(1n));
      list.forEach((argument, k) => {
        if (!hasNulls[k]) return addArgument(argument, k);
        // NULL is -1.
        writer.lower(argument.columns.map((column) => columns[column]).reduce((a, b) => i32.or(a, b)));
        code.i32(0).op("i32.ge_s").if(() => addArgument(argument, k));
      });
      records.update(slot);
    };
    const one = { rowsAtOnce: 1, body: (row: number) => addRow(row, 0) };
    const some = {
      rowsAtOnce: ROWS_AT_ONCE,
      body: (row: number) => {
        for (let ahead = 0; ahead < ROWS_AT_ONCE; ahead++) addRow(row, ahead);
      },
    };
    const words = isNarrow && !hasNulls.includes(true) ? addendsOf(writer, shape, isJoined, leasts) : [];
    // Rows with nulls, and those with products of wide integers, are added one by one.
    if (words.length === 0) writer.unrolledRows([some, one]);
    else {
      const four = new FourRows(writer, words), extremes = list.filter(({ needs }) => needs.min || needs.max);
      const addresses = FourRecords.of(writer, inputs, keys, table, offsetsStride(shape));
      const read = [
        ...(addresses === undefined ? [number] : []),
        ...extremes.flatMap((argument) => argument.columns.map((column) => columns[column])),
        ...records.nodes,
      ];
      const addFour = (row: number, ahead: number) => {
        four.load(row, ahead);
        addresses?.load(row, ahead);
        for (let lane = 0; lane < FOUR; lane++) {
          writer.loadRow(read, row, undefined, ahead + lane);
          if (addresses === undefined) findSlot();
          else addresses.set(slot, lane);
          four.add(lane, slot);
          list.forEach((argument, k) => {
            if (!extremes.includes(argument)) return;
            writer.lower(i64.extendU(columns[argument.columns[0]]));
            code.set(offset);
            keepExtremes(argument, k);
          });
          records.update(slot);
        }
      };
      const body = (row: number) => {
        for (let ahead = 0; ahead < ROWS_AT_ONCE; ahead += FOUR) addFour(row, ahead);
      };
      writer.unrolledRows([{ rowsAtOnce: ROWS_AT_ONCE, body }, one]);
    }
    code.get(writer.end);
    return { bytes: writer.finish(), cells };
  });
}

/** What a row adds to the words of a record for the number of rows and the sums, up to the last one that is needed. */
function addendsOf(
  { code }: KernelWriter,
  { columns, arguments: list }: OffsetsShape,
  isJoined: boolean,
  leasts: ReadonlyMap<number, number>,
): (Addend | undefined)[] {
  const words: (Addend | undefined)[] = [{ kind: "one" }];
  const splats = new Map([...leasts].map(([column, least]) => {
    const local = code.local("v128");
    code.get(least).op("i32.wrap_i64").op("i32x4.splat").set(local);
    return [column, local];
  }));
  list.forEach((argument, k) => {
    if (!argument.needs.sum) return;
    const at = isJoined && k === 0 ? 0 : argumentWord(list.length, k, "sum") / 8;
    const read = argument.columns.map((column) => columns[column].input);
    words[at] = isProduct(argument)
      ? { kind: "product", inputs: read, leasts: argument.columns.map((column) => splats.get(column)!) }
      : { kind: "column", input: read[0], above: at === 0 ? Number(JOINED_ROW >> 32n) : 0 };
  });
  return Array.from(words);
}

/** Constants of the merge for each column, in the order of its inputs: least, power, isQuotient. */
const COLUMN_INPUTS = 3;

/** The inputs of the merge: those of each column, then for each argument whether it has nulls, and whether the rows are joined. */
export function mergeInputs({ columns, arguments: list }: OffsetsShape): Input[] {
  const flag: Input = { kind: "constant", type: "i32", value: 0 };
  const ofColumn: Input[] = [
    { kind: "constant", type: "f64", value: 0 },
    { kind: "constant", type: "f64", value: 1 },
    flag,
  ];
  return [...columns.flatMap(() => ofColumn), ...list.map(() => flag), flag];
}

/** Sets the inputs of the merge. `offsets`: of the columns. */
export function setMergeInputs(
  merge: BoundKernel,
  { arguments: list }: OffsetsShape,
  offsets: readonly ChunkOffsets[],
  isJoined: boolean,
): void {
  let next = 0;
  for (const { least, power, scale } of offsets) {
    merge.setConstant(next++, least);
    merge.setConstant(next++, power);
    merge.setConstant(next++, scale === "product" ? 0 : 1);
  }
  for (const argument of list) merge.setConstant(next++, hasNulls(argument, offsets) ? 1 : 0);
  merge.setConstant(next, isJoined ? 1 : 0);
}

/**
 * Merges the records of a segment's table that have rows into those of the same groups, which must be there, and empties them. Rows are group
 * numbers. Cells: `segment`, `table`: the addresses of both.
 */
export function mergeOffsetsKernel(memory: WebAssembly.Memory, shape: OffsetsShape): CompiledKernel {
  return kernelCache(memory).get(`mergeOffsets|${keyOf(shape)}`, () => {
    const writer = new KernelWriter(memory, mergeInputs(shape)), { code } = writer;
    const cells: Record<string, number> = { segment: writer.cell(), table: writer.cell() };
    cells.count = writer.cellCount;
    const segment = writer.loadCell("i32", cells.segment), table = writer.loadCell("i32", cells.table);
    const { aggregates, sources } = shape, own = byStates(shape), ownSlots = statesOf(own);
    const records = new Records(writer, withoutArgs(aggregates), shape.headerWords);
    const fresh = new Records(writer, withoutArgs(own), segmentHeaderWords(shape));
    const flagsAt = shape.columns.length * COLUMN_INPUTS, isJoined = input(flagsAt + shape.arguments.length, "i32");
    const slot = code.local("i32"), record = code.local("i32");
    const rowCount = writer.local("i64"), joinedSum = writer.local("i64");
    const words = shape.arguments.map(() => ({
      sum: writer.local("i64"),
      values: writer.local("i64"),
      min: writer.local("i64"),
      max: writer.local("i64"),
    }));
    const ownStates = ownSlots.map((list) => list.map(({ type }) => writer.local(type)));
    const ofColumns = shape.columns.map(({ values }, column) => {
      const [leastDouble, power, isQuotient] = (["f64", "f64", "i32"] as const).map((type, c) =>
        input(column * COLUMN_INPUTS + c, type)
      );
      const least = i64.truncSatF64(leastDouble);
      const scaled = (x: IrNode) => select(isQuotient, f64.div(x, power), f64.mul(x, power));
      const valueOf = (integer: IrNode) => {
        if (values === "integers") return integer;
        const double = scaled(f64.convertI64(integer));
        return values === "f64" ? double : f64.promote(f32.demote(double));
      };
      return { least, scaled, valueOf };
    });
    const summaries = shape.arguments.map((argument, k): RowsSummary => {
      const { sum, values, min, max } = words[k], { least, valueOf } = ofColumns[argument.columns[0]];
      if (isProduct(argument)) {
        const product = argument.columns.reduce((x, column) => ofColumns[column].scaled(x), f64.convertI64(sum.node));
        return { rowCount: rowCount.node, valueCount: values.node, sum: product, min: product, max: product };
      }
      return {
        rowCount: rowCount.node,
        valueCount: values.node,
        sum: valueOf(i64.add(sum.node, i64.mul(values.node, least))),
        min: valueOf(i64.add(min.node, least)),
        max: valueOf(i64.add(max.node, least)),
      };
    });
    const rows: RowsSummary = {
      ...{ valueCount: rowCount.node, sum: rowCount.node, min: rowCount.node, max: rowCount.node },
      rowCount: rowCount.node,
    };
    let next = 0;
    const later = aggregates.map(({ aggregate }, k) => {
      const source = sources[k]!;
      if (source === "states") return ownStates[next++].map(({ node }) => node);
      return aggregate.summarised!(source === "rows" ? rows : summaries[source]);
    });
    writer.scalarRows(undefined, [], (row) => {
      code.block((empty) => {
        code.get(segment).get(row).i32(offsetsStride(shape)).op("i32.mul").op("i32.add").tee(slot);
        code.memory("i64.load").set(rowCount.local);
        code.get(rowCount.local).op("i64.eqz").brIf(empty);
        code.get(table).get(row).i32(strideOf(shape.headerWords, aggregates)).op("i32.mul").op("i32.add").set(record);
        code.i64(0n).set(joinedSum.local);
        writer.lower(isJoined);
        code.if(() => {
          code.get(rowCount.local).i64(JOINED_ROW - 1n).op("i64.and").set(joinedSum.local);
          code.get(rowCount.local).i64(BigInt(JOINED_SHIFT)).op("i64.shr_u").set(rowCount.local);
        });
        words.forEach((list, k) => {
          for (const name of ["sum", "values", "min", "max"] as const) {
            code.get(slot).memory("i64.load", argumentWord(words.length, k, name)).set(list[name].local);
          }
          if (k === 0) code.get(list.sum.local).get(joinedSum.local).op("i64.add").set(list.sum.local);
          writer.lower(input(flagsAt + k, "i32"));
          code.op("i32.eqz").if(() => code.get(rowCount.local).set(list.values.local));
        });
        let at = 8 * segmentHeaderWords(shape);
        ownStates.forEach((list, k) =>
          list.forEach(({ local }, s) => {
            code.get(slot).memory(`${ownSlots[k][s].type}.load`, at).set(local);
            at += 8;
          })
        );
        records.mergeStates(record, later);
        emptyRecord(writer, shape, slot, fresh);
      });
    });
    code.get(writer.end);
    return { bytes: writer.finish(), cells };
  });
}

function emptyRecord({ code }: KernelWriter, { arguments: list }: OffsetsShape, slot: number, states: Records): void {
  code.get(slot).i64(0n).memory("i64.store");
  list.forEach((_, k) => {
    const initial = { sum: 0n, values: 0n, min: NO_MIN, max: NO_MAX };
    for (const name of ["sum", "values", "min", "max"] as const) {
      code.get(slot).i64(initial[name]).memory("i64.store", argumentWord(list.length, k, name));
    }
  });
  states.initialise(slot);
}

/** Empties the records of a segment's table. Rows are group numbers. Cell `segment`: its address. */
export function emptyOffsetsKernel(memory: WebAssembly.Memory, shape: OffsetsShape): CompiledKernel {
  return kernelCache(memory).get(`emptyOffsets|${keyOf(shape)}`, () => {
    const writer = new KernelWriter(memory, []), { code } = writer;
    const cells: Record<string, number> = { segment: writer.cell() };
    cells.count = writer.cellCount;
    const segment = writer.loadCell("i32", cells.segment), slot = code.local("i32");
    const states = new Records(writer, withoutArgs(byStates(shape)), segmentHeaderWords(shape));
    writer.scalarRows(undefined, [], (row) => {
      code.get(segment).get(row).i32(offsetsStride(shape)).op("i32.mul").op("i32.add").set(slot);
      emptyRecord(writer, shape, slot, states);
    });
    code.get(writer.end);
    return { bytes: writer.finish(), cells };
  });
}

/** Adds the groups of rows to their dense table in the order of their first rows, without values. As `denseKernel`. */
export function newGroupsKernel(
  memory: WebAssembly.Memory,
  inputs: readonly Input[],
  keys: readonly DenseKey[],
  { aggregates }: OffsetsShape,
): CompiledKernel {
  const states = withoutArgs(aggregates).map((shape) => ({ ...shape, id: `start of ${shape.id}` }));
  return denseKernel(memory, inputs, undefined, keys, states, false);
}
