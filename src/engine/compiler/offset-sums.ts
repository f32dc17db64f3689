/** The kernel of aggregates without keys over the offsets of packed chunks, under conditions that are ranges of offsets: four rows at a time. */
import type { CompiledKernel } from "./aggregate.ts";
import { kernelCache, KernelWriter } from "./kernel.ts";
import { argumentWord, factorsOf, isProduct, NO_MAX, NO_MIN, type OffsetsArgument } from "./offsets.ts";

/** A range of offsets, open at the ends that need no test. NULL is -1. */
export interface OffsetCondition {
  column: number;
  hasLow: boolean;
  hasHigh: boolean;
}

/** A column is given by its number among those that are read. */
export interface OffsetSums {
  columnCount: number;
  conditions: readonly OffsetCondition[];
  arguments: readonly (OffsetsArgument & { hasNulls: boolean })[];
}

const LANES = 4;
const GREATEST = 2 ** 31 - 1;

/**
 * Writes a record of a segment's table (`offsets.ts`) of the rows that pass all conditions. The integers of factors of products have 32 bits.
 * Cells: `column…`: the addresses of the columns' offsets; `least…`: of factors, the least integers; `below…`, `above…`: of each condition, the
 * offsets next to the range; `segment`: the record's address.
 */
export function offsetSumsKernel(memory: WebAssembly.Memory, sums: OffsetSums): CompiledKernel {
  const { columnCount, conditions } = sums;
  const argumentText = sums.arguments.map(({ columns, needs, hasNulls }) =>
    `${columns.join("*")}${Object.values(needs)}${hasNulls}`
  );
  const conditionText = conditions.map(({ column, hasLow, hasHigh }) => `${column}${hasLow}${hasHigh}`);
  return kernelCache(memory).get(`offsetSums|${columnCount}|${conditionText}|${argumentText.join(";")}`, () => {
    const writer = new KernelWriter(memory, []), { code } = writer;
    const cells: Record<string, number> = { segment: writer.cell() };
    for (let k = 0; k < columnCount; k++) cells[`column${k}`] = writer.cell();
    const factors = factorsOf(sums.arguments);
    for (const column of factors) cells[`least${column}`] = writer.cell();
    conditions.forEach(({ hasLow, hasHigh }, k) => {
      if (hasLow) cells[`below${k}`] = writer.cell();
      if (hasHigh) cells[`above${k}`] = writer.cell();
    });
    cells.count = writer.cellCount;
    const segment = writer.loadCell("i32", cells.segment);
    const splat = (cell: number) => {
      const local = code.local("v128");
      code.get(writer.loadCell("i32", cell)).op("i32x4.splat").set(local);
      return local;
    };
    const constant = (value: number) => {
      const local = code.local("v128");
      code.splat32(value).set(local);
      return local;
    };
    const columns = Array.from({ length: columnCount }, (_, k) => ({
      address: writer.loadCell("i32", cells[`column${k}`]),
      offsets: code.local("v128"),
    }));
    const integers = new Map(
      factors.map((column) => [column, { least: splat(cells[`least${column}`]), values: code.local("v128") }]),
    );
    const tests = conditions.flatMap(({ column, hasLow, hasHigh }, k) => [
      ...(hasLow ? [{ column, comparison: "i32x4.gt_s", bound: splat(cells[`below${k}`]) }] : []),
      ...(hasHigh ? [{ column, comparison: "i32x4.lt_s", bound: splat(cells[`above${k}`]) }] : []),
    ]);
    const passes = code.local("v128"), rows = code.local("v128"), added = code.local("v128");
    const greatest = constant(GREATEST), none = constant(-1), all = none;
    const states = sums.arguments.map((argument) => ({
      ...argument,
      isValue: argument.hasNulls ? code.local("v128") : passes,
      values: argument.hasNulls ? code.local("v128") : rows,
      sums: [code.local("v128"), code.local("v128")],
      min: constant(GREATEST),
      max: constant(-1),
    }));

    /** `isTail`: fewer than four rows are left. */
    const addFour = (row: number, isTail: boolean) => {
      for (const { address, offsets } of columns) {
        code.get(address).get(row).i32(2).op("i32.shl").op("i32.add").memory("v128.load").set(offsets);
      }
      tests.forEach(({ column, comparison, bound }, k) => {
        code.get(columns[column].offsets).get(bound).op(comparison);
        if (k > 0) code.op("v128.and");
      });
      if (tests.length === 0) code.get(all);
      if (isTail) {
        code.get(row).op("i32x4.splat").lanes64(1n << 32n, (3n << 32n) | 2n).op("i32x4.add");
        code.get(writer.end).op("i32x4.splat").op("i32x4.lt_s").op("v128.and");
      }
      code.set(passes).get(rows).get(passes).op("i32x4.sub").set(rows);
      for (const [column, { least, values }] of integers) {
        code.get(columns[column].offsets).get(least).op("i32x4.add").set(values);
      }
      for (const argument of states) {
        const { needs, hasNulls, isValue, values, sums: [low, high], min, max } = argument;
        const [{ offsets }, factor] = argument.columns.map((column) => columns[column]);
        if (hasNulls) {
          code.get(passes).get(offsets);
          if (factor !== undefined) code.get(factor.offsets).op("v128.or");
          code.splat64(0n).op("i32x4.ge_s").op("v128.and").set(isValue);
          code.get(values).get(isValue).op("i32x4.sub").set(values);
        }
        if (isProduct(argument)) {
          if (!needs.sum) continue;
          const [a, b] = argument.columns.map((column) => integers.get(column)!.values);
          code.get(a);
          // Without tests all rows pass.
          if (tests.length > 0 || isTail || hasNulls) code.get(isValue).op("v128.and");
          code.set(added);
          for (const [sum, half] of [[low, "low"], [high, "high"]] as const) {
            code.get(sum).get(added).get(b).op(`i64x2.extmul_${half}_i32x4_s`).op("i64x2.add").set(sum);
          }
          continue;
        }
        if (needs.sum) {
          code.get(offsets).get(isValue).op("v128.and").set(added);
          for (const [sum, half] of [[low, "low"], [high, "high"]] as const) {
            code.get(sum).get(added).op(`i64x2.extend_${half}_i32x4_u`).op("i64x2.add").set(sum);
          }
        }
        if (needs.min) {
          code.get(min).get(offsets).get(greatest).get(isValue).op("v128.bitselect").op("i32x4.min_s").set(min);
        }
        if (needs.max) {
          code.get(max).get(offsets).get(none).get(isValue).op("v128.bitselect").op("i32x4.max_s").set(max);
        }
      }
    };
    writer.strips((row, stripEnd) => {
      code.block((done) =>
        code.loop((again) => {
          code.get(row).i32(LANES).op("i32.add").get(stripEnd).op("i32.gt_s").brIf(done);
          addFour(row, false);
          code.get(row).i32(LANES).op("i32.add").set(row).br(again);
        })
      );
      code.get(row).get(stripEnd).op("i32.lt_s").if(() => addFour(row, true));
      code.get(stripEnd).set(row);
    });

    const store = (at: number, push: () => void) => {
      code.get(segment);
      push();
      code.memory("i64.store", at);
    };
    const total = (vector: number) => {
      for (let lane = 0; lane < LANES; lane++) {
        code.get(vector).lane("i32x4.extract_lane", lane);
        if (lane > 0) code.op("i32.add");
      }
      code.op("i64.extend_i32_u");
    };
    const extreme = (vector: number, comparison: string) => {
      const best = code.local("i32"), next = code.local("i32");
      code.get(vector).lane("i32x4.extract_lane", 0).set(best);
      for (let lane = 1; lane < LANES; lane++) {
        code.get(vector).lane("i32x4.extract_lane", lane).tee(next).get(best).get(next).get(best).op(comparison);
        code.op("select").set(best);
      }
      code.get(best).op("i64.extend_i32_s");
    };
    store(0, () => total(rows));
    states.forEach(({ needs, hasNulls, values, sums: [low, high], min, max }, k) => {
      store(argumentWord(states.length, k, "sum"), () => {
        code.get(low).get(high).op("i64x2.add").tee(added).lane("i64x2.extract_lane", 0);
        code.get(added).lane("i64x2.extract_lane", 1).op("i64.add");
      });
      store(argumentWord(states.length, k, "values"), () => hasNulls ? total(values) : code.i64(0n));
      store(argumentWord(states.length, k, "min"), () => needs.min ? extreme(min, "i32.lt_s") : code.i64(NO_MIN));
      store(argumentWord(states.length, k, "max"), () => needs.max ? extreme(max, "i32.gt_s") : code.i64(NO_MAX));
    });
    code.get(writer.end);
    return { bytes: writer.finish(), cells };
  });
}
