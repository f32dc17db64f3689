/**
 * Finds the last row of a group at or before a time, for ASOF and LT joins: walks through the rows in time order and remembers the last
 * one of each group.
 */
import { type Code, Module, sharedMemory, type ValueType } from "../../wasm/assembler.ts";

/** How rows are compared in time. */
export interface TimeRule {
  /** Rows at the same time do not match. */
  isStrict: boolean;
  /** Older rows than the tolerance do not match. */
  isLimited: boolean;
}

/**
 * For pairs `from … n-1`: replaces the group in `rows` by the number of its last row up to the time of row `leftRows[pair]`. -1 stays, and
 * stands for no row. `times` and `groups` are of the rows that are walked through; `last` has one i32 for each group. At `state` there is
 * the next row to walk to, and after it the one to stop at. If pairs need rows from there on and `end` is greater, it returns the pair to
 * continue with, otherwise n. The tolerance is an unsigned number.
 */
export type LastRowsKernel = (
  leftTimes: number,
  leftRows: number,
  rows: number,
  from: number,
  n: number,
  times: number,
  groups: number,
  last: number,
  state: number,
  end: number,
  tolerance: bigint,
) => number;

const instances = new WeakMap<WebAssembly.Memory, Map<string, LastRowsKernel>>();

export function lastRowsKernel(memory: WebAssembly.Memory, rule: TimeRule): LastRowsKernel {
  let known = instances.get(memory);
  if (known === undefined) instances.set(memory, known = instantiate(memory));
  return known.get(nameOf(rule))!;
}

function nameOf({ isStrict, isLimited }: TimeRule): string {
  return `${isStrict ? "before" : "upTo"}${isLimited ? "Within" : ""}`;
}

const PARAMETERS: ValueType[] = [...new Array<ValueType>(10).fill("i32"), "i64"];

function instantiate(memory: WebAssembly.Memory): Map<string, LastRowsKernel> {
  const module = new Module([sharedMemory(memory)]);
  for (const isStrict of [false, true]) {
    for (const isLimited of [false, true]) {
      const rule = { isStrict, isLimited };
      const { code } = module.function(PARAMETERS, ["i32"], nameOf(rule));
      write(code, rule);
    }
  }
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(module.finish()), { env: { memory } });
  return new Map(Object.entries(exports) as [string, LastRowsKernel][]);
}

function write(code: Code, { isStrict, isLimited }: TimeRule): void {
  const [leftTimes, leftRows, rows, pair, n, times, groups, last, state, end, tolerance] = Array.from(
    { length: 11 },
    (_, k) => k,
  );
  const next = code.local("i32"), stop = code.local("i32"), row = code.local("i32"), time = code.local("i64");
  const at = (base: number, index: number, shift: number) =>
    code.get(base).get(index).i32(shift).op("i32.shl").op("i32.add");
  const leave = () => code.get(state).get(next).memory("i32.store").get(pair).return();
  code.get(state).memory("i32.load").set(next);
  code.get(state).memory("i32.load", 4).set(stop);
  code.block((done) =>
    code.loop((again) => {
      code.get(pair).get(n).op("i32.ge_s").brIf(done);
      at(leftRows, pair, 2).memory("i32.load").set(row);
      at(leftTimes, row, 3).memory("i64.load").set(time);
      code.block((arrived) =>
        code.loop((walk) => {
          code.get(next).get(stop).op("i32.ge_s").if(() => {
            code.get(stop).get(end).op("i32.ge_s").brIf(arrived);
            leave();
          });
          at(times, next, 3).memory("i64.load").get(time).op(isStrict ? "i64.ge_s" : "i64.gt_s").brIf(arrived);
          code.get(last);
          at(groups, next, 2).memory("i32.load");
          code.i32(2).op("i32.shl").op("i32.add").get(next).memory("i32.store");
          code.get(next).i32(1).op("i32.add").set(next).br(walk);
        })
      );
      at(rows, pair, 2).memory("i32.load").tee(row).i32(0).op("i32.ge_s").if(() => {
        at(last, row, 2).memory("i32.load").set(row);
        if (isLimited) {
          code.get(row).i32(0).op("i32.ge_s").if(() => {
            code.get(time);
            at(times, row, 3).memory("i64.load");
            code.op("i64.sub").get(tolerance).op("i64.gt_u").if(() => code.i32(-1).set(row));
          });
        }
        at(rows, pair, 2).get(row).memory("i32.store");
      });
      code.get(pair).i32(1).op("i32.add").set(pair).br(again);
    })
  );
  leave();
  code.i32(0);
}
