/**
 * Finds rows of groups by time, for WINDOW and HORIZON joins. The rows of group g are at positions `starts[g] … starts[g + 1] - 1` of a list,
 * and ascend by time. Times are clamped to those of the type; the least i64 is no time.
 */
import { type Code, Module, sharedMemory, type ValueType } from "../../wasm/assembler.ts";

const MIN = -(1n << 63n), MAX = (1n << 63n) - 1n;

export interface WindowRowsKernels {
  /**
   * Writes the times of rows `from … from+n-1`, moved by `offset` times `unit`. `offsets`: one for each row, instead of the constant; 0 for
   * none. Negative ones count as 0. Without a time or an offset the result has none.
   */
  bounds(
    times: number,
    offsets: number,
    offset: bigint,
    unit: bigint,
    isPreceding: number,
    from: number,
    n: number,
    out: number,
  ): void;
  /** Writes the times of rows `from … from+n-1`, each moved by `count` offsets. */
  moved(times: number, from: number, n: number, offsets: number, count: number, out: number): void;
  /** The greatest of `n` times, n > 0. */
  greatest(times: number, n: number): bigint;
  /**
   * For each of `n` rows: the positions from the first row of its group at or after `lows` up to the first one after `highs`. With
   * `includesPrevailing`, it begins with the last row before `lows`, unless there is one at this time; if `highs` is before `lows`, it is the
   * last row at or before `lows`. A group below 0 has no rows.
   */
  ranges(
    lows: number,
    highs: number,
    groups: number,
    n: number,
    starts: number,
    times: number,
    includesPrevailing: number,
    firsts: number,
    ends: number,
  ): void;
  /** For each of `n` rows and its `count` times: the last of `rows` of its group at or before it, or -1. */
  lasts(
    targets: number,
    groups: number,
    n: number,
    count: number,
    starts: number,
    times: number,
    rows: number,
    out: number,
  ): void;
}

const instances = new WeakMap<WebAssembly.Memory, WindowRowsKernels>();

export function windowRowsKernels(memory: WebAssembly.Memory): WindowRowsKernels {
  let known = instances.get(memory);
  if (known === undefined) instances.set(memory, known = instantiate(memory));
  return known;
}

function instantiate(memory: WebAssembly.Memory): WindowRowsKernels {
  const module = new Module([sharedMemory(memory)]), i32 = (count: number) => new Array<ValueType>(count).fill("i32");
  writeBounds(module.function([...i32(2), "i64", "i64", ...i32(4)], [], "bounds").code);
  writeMoved(module.function(i32(6), [], "moved").code);
  writeGreatest(module.function(i32(2), ["i64"], "greatest").code);
  writeRanges(module.function(i32(9), [], "ranges").code);
  writeLasts(module.function(i32(8), [], "lasts").code);
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(module.finish()), { env: { memory } });
  return exports as unknown as WindowRowsKernels;
}

/** Local numbers of the parameters. */
const parameters = (count: number): number[] => Array.from({ length: count }, (_, k) => k);

/** The address of an element. */
function at(code: Code, base: number, index: number, shift: number): Code {
  return code.get(base).get(index).i32(shift).op("i32.shl").op("i32.add");
}

function forEach(code: Code, index: number, count: number, body: () => void): void {
  code.block((done) =>
    code.loop((again) => {
      code.get(index).get(count).op("i32.ge_s").brIf(done);
      body();
      code.get(index).i32(1).op("i32.add").set(index).br(again);
    })
  );
}

/** `time` becomes the sum of both, unless it is none. */
function addTo(code: Code, time: number, distance: number, sum: number): void {
  code.get(time).i64(MIN).op("i64.ne").if(() => {
    code.get(time).get(distance).op("i64.add").set(sum);
    code.get(distance).i64(0n).op("i64.ge_s").if(
      () => code.get(sum).get(time).op("i64.lt_s").if(() => code.i64(MAX).set(sum)),
      () => {
        code.get(sum).get(time).op("i64.gt_s").get(sum).i64(MIN).op("i64.eq").op("i32.or")
          .if(() => code.i64(MIN + 1n).set(sum));
      },
    );
    code.get(sum).set(time);
  });
}

function writeBounds(code: Code): void {
  const [times, offsets, offset, unit, isPreceding, from, n, out] = parameters(8);
  const row = code.local("i32"), end = code.local("i32"), time = code.local("i64"), distance = code.local("i64");
  const sum = code.local("i64");
  code.get(from).set(row).get(from).get(n).op("i32.add").set(end);
  forEach(code, row, end, () => {
    at(code, times, row, 3).memory("i64.load").set(time);
    code.get(offset).set(distance);
    code.get(offsets).if(() => at(code, offsets, row, 3).memory("i64.load").set(distance));
    code.get(distance).i64(MIN).op("i64.eq").if(() => code.i64(MIN).set(time));
    code.get(distance).i64(0n).op("i64.lt_s").if(() => code.i64(0n).set(distance));
    code.get(distance).i64(MAX).get(unit).op("i64.div_s").op("i64.gt_s").if(
      () => code.i64(MAX).set(distance),
      () => code.get(distance).get(unit).op("i64.mul").set(distance),
    );
    code.get(isPreceding).if(() => code.i64(0n).get(distance).op("i64.sub").set(distance));
    addTo(code, time, distance, sum);
    code.get(out).get(time).memory("i64.store").get(out).i32(8).op("i32.add").set(out);
  });
}

function writeMoved(code: Code): void {
  const [times, from, n, offsets, count, out] = parameters(6);
  const row = code.local("i32"), end = code.local("i32"), k = code.local("i32"), time = code.local("i64");
  const distance = code.local("i64"), sum = code.local("i64");
  code.get(from).set(row).get(from).get(n).op("i32.add").set(end);
  forEach(code, row, end, () => {
    code.i32(0).set(k);
    forEach(code, k, count, () => {
      at(code, times, row, 3).memory("i64.load").set(time);
      at(code, offsets, k, 3).memory("i64.load").set(distance);
      addTo(code, time, distance, sum);
      code.get(out).get(time).memory("i64.store").get(out).i32(8).op("i32.add").set(out);
    });
  });
}

function writeGreatest(code: Code): void {
  const [times, n] = parameters(2);
  const row = code.local("i32"), most = code.local("i64"), time = code.local("i64");
  code.i64(MIN).set(most);
  forEach(code, row, n, () => {
    at(code, times, row, 3).memory("i64.load").tee(time).get(most).op("i64.gt_s").if(() => code.get(time).set(most));
  });
  code.get(most);
}

/** `low` becomes the first position from `low` to `high` whose time is not below (`isAfter`: is above) `time`; `high` if there is none. */
function search(code: Code, low: number, high: number, middle: number, times: number, time: number, isAfter: boolean) {
  code.block((found) =>
    code.loop((again) => {
      code.get(low).get(high).op("i32.ge_s").brIf(found);
      code.get(low).get(high).op("i32.add").i32(1).op("i32.shr_u").set(middle);
      at(code, times, middle, 3).memory("i64.load").get(time).op(isAfter ? "i64.le_s" : "i64.lt_s").if(
        () => code.get(middle).i32(1).op("i32.add").set(low),
        () => code.get(middle).set(high),
      );
      code.br(again);
    })
  );
}

function writeRanges(code: Code): void {
  const [lows, highs, groups, n, starts, times, includesPrevailing, firsts, ends] = parameters(9);
  const row = code.local("i32"), group = code.local("i32"), low = code.local("i64"), high = code.local("i64");
  const start = code.local("i32"), end = code.local("i32"), first = code.local("i32"), last = code.local("i32");
  const bound = code.local("i32"), middle = code.local("i32"), step = code.local("i32");
  forEach(code, row, n, () => {
    code.i32(0).set(first).i32(0).set(last);
    at(code, lows, row, 3).memory("i64.load").set(low);
    at(code, highs, row, 3).memory("i64.load").set(high);
    at(code, groups, row, 2).memory("i32.load").tee(group).i32(0).op("i32.ge_s");
    code.get(low).i64(MIN).op("i64.ne").op("i32.and").get(high).i64(MIN).op("i64.ne").op("i32.and").if(() => {
      at(code, starts, group, 2).memory("i32.load").tee(start).set(first);
      at(code, starts, group, 2).memory("i32.load", 4).tee(end).set(bound);
      search(code, first, bound, middle, times, low, false);
      // Windows are mostly short: the end is searched from the start, in growing steps.
      code.get(first).set(last).get(first).set(bound).i32(1).set(step);
      code.block((passed) =>
        code.loop((again) => {
          code.get(bound).get(end).op("i32.ge_s").brIf(passed);
          at(code, times, bound, 3).memory("i64.load").get(high).op("i64.gt_s").brIf(passed);
          code.get(bound).i32(1).op("i32.add").set(last);
          code.get(end).get(bound).op("i32.sub").get(step).op("i32.gt_s").if(
            () => code.get(bound).get(step).op("i32.add").set(bound),
            () => code.get(end).set(bound),
          );
          code.get(step).i32(1).op("i32.shl").set(step).br(again);
        })
      );
      search(code, last, bound, middle, times, high, true);
      code.get(includesPrevailing).get(high).get(low).op("i64.lt_s").op("i32.and").if(() => {
        code.get(end).set(bound);
        search(code, last, bound, middle, times, low, true);
        code.get(last).set(first);
        code.get(last).get(start).op("i32.gt_s").if(() => code.get(last).i32(1).op("i32.sub").set(first));
      });
      code.get(includesPrevailing).get(high).get(low).op("i64.ge_s").op("i32.and");
      code.get(first).get(start).op("i32.gt_s").op("i32.and").if(() => {
        code.get(first).get(end).op("i32.ge_s").if(
          () => code.get(first).i32(1).op("i32.sub").set(first),
          () => {
            at(code, times, first, 3).memory("i64.load").get(low).op("i64.ne")
              .if(() => code.get(first).i32(1).op("i32.sub").set(first));
          },
        );
      });
    });
    at(code, firsts, row, 2).get(first).memory("i32.store");
    at(code, ends, row, 2).get(last).memory("i32.store");
  });
}

function writeLasts(code: Code): void {
  const [targets, groups, n, count, starts, times, rows, out] = parameters(8);
  const row = code.local("i32"), k = code.local("i32"), group = code.local("i32"), target = code.local("i64");
  const start = code.local("i32"), end = code.local("i32"), low = code.local("i32"), high = code.local("i32");
  const middle = code.local("i32"), found = code.local("i32");
  forEach(code, row, n, () => {
    code.i32(0).set(start).i32(0).set(end);
    at(code, groups, row, 2).memory("i32.load").tee(group).i32(0).op("i32.ge_s").if(() => {
      at(code, starts, group, 2).memory("i32.load").set(start);
      at(code, starts, group, 2).memory("i32.load", 4).set(end);
    });
    // The times of a row ascend.
    code.get(start).set(low).i32(0).set(k);
    forEach(code, k, count, () => {
      code.i32(-1).set(found);
      code.get(targets).memory("i64.load").tee(target).i64(MIN).op("i64.ne").if(() => {
        code.get(end).set(high);
        search(code, low, high, middle, times, target, true);
        code.get(low).get(start).op("i32.gt_s").if(() => {
          code.get(low).i32(1).op("i32.sub").set(middle);
          at(code, rows, middle, 2).memory("i32.load").set(found);
        });
      });
      code.get(out).get(found).memory("i32.store").get(out).i32(4).op("i32.add").set(out);
      code.get(targets).i32(8).op("i32.add").set(targets);
    });
  });
}
