/** Kernels of SAMPLE BY over ordered timestamps. */
import { aggregateKey, type AggregateShape, type CompiledKernel, Records, strideOf } from "./aggregate.ts";
import type { Input } from "./expression.ts";
import type { IrNode } from "./ir.ts";
import { inputShape, kernelCache, KernelWriter, shapeOf } from "./kernel.ts";

/**
 * Splits rows start … end-1 into runs of one bucket, by galloping search. Cells: times (address), origin and stride
 * (i64), starts (i64 list of the buckets' starts), ends (i32 list of the runs' ends), capacity. Result: the number of
 * runs; the end of the last run is the next row.
 */
export function edgesKernel(memory: WebAssembly.Memory): CompiledKernel {
  return kernelCache(memory).get("edges", () => {
    const writer = new KernelWriter(memory, []);
    const { code } = writer;
    const cells: Record<string, number> = {};
    for (const name of ["times", "origin", "stride", "starts", "ends", "capacity"]) cells[name] = writer.cell();
    cells.count = writer.cellCount;
    const [times, starts, ends, capacity] = ["times", "starts", "ends", "capacity"].map((name) =>
      writer.loadCell("i32", cells[name])
    );
    const origin = writer.loadCell("i64", cells.origin), stride = writer.loadCell("i64", cells.stride);
    const row = code.local("i32"),
      count = code.local("i32"),
      low = code.local("i32"),
      high = code.local("i32"),
      step = code.local("i32"),
      middle = code.local("i32");
    const bucket = code.local("i64"), bound = code.local("i64");
    const timeAt = (push: () => void) => {
      code.get(times);
      push();
      return code.i32(3).op("i32.shl").op("i32.add").memory("i64.load");
    };
    code.get(writer.start).set(row);
    code.block((done) =>
      code.loop((next) => {
        code.get(row).get(writer.end).op("i32.ge_s").get(count).get(capacity).op("i32.ge_s").op("i32.or").brIf(done);
        writer.poll();
        // bucket = time - ((time - origin) mod stride), with a non-negative remainder
        timeAt(() => code.get(row)).tee(bucket);
        code.get(bucket).get(origin).op("i64.sub").get(stride).op("i64.rem_s").get(stride).op("i64.add").get(stride).op(
          "i64.rem_s",
        ).op("i64.sub").tee(bucket);
        code.get(stride).op("i64.add").set(bound);
        code.get(row).set(low);
        code.i32(16).set(step);
        code.block((found) =>
          code.loop((again) => {
            code.get(low).get(step).op("i32.add").get(writer.end).op("i32.ge_s").brIf(found);
            timeAt(() => code.get(low).get(step).op("i32.add")).get(bound).op("i64.ge_s").brIf(found);
            code.get(low).get(step).op("i32.add").set(low);
            code.get(step).i32(1).op("i32.shl").set(step).br(again);
          })
        );
        code.get(low).get(step).op("i32.add").tee(high).get(writer.end).get(high).get(writer.end).op("i32.lt_s").op(
          "select",
        ).set(high);
        code.block((found) =>
          code.loop((again) => {
            code.get(high).get(low).op("i32.sub").i32(1).op("i32.le_s").brIf(found);
            code.get(low).get(high).op("i32.add").i32(1).op("i32.shr_u").set(middle);
            timeAt(() => code.get(middle)).get(bound).op("i64.lt_s").if(
              () => code.get(middle).set(low),
              () => code.get(middle).set(high),
            );
            code.br(again);
          })
        );
        code.get(starts).get(count).i32(3).op("i32.shl").op("i32.add").get(bucket).memory("i64.store");
        code.get(ends).get(count).i32(2).op("i32.shl").op("i32.add").get(high).memory("i32.store");
        code.get(count).i32(1).op("i32.add").set(count);
        code.get(high).set(row).br(next);
      })
    );
    code.get(count);
    return { bytes: writer.finish(), cells };
  });
}

/**
 * Moves a bucket's groups from a dense table to `target`, as records of (bucket, header, states), and empties the
 * table. Rows are indices in the list. Cells: table, list, target, bucket (i64).
 */
export function flushKernel(memory: WebAssembly.Memory, aggregates: readonly AggregateShape[]): CompiledKernel {
  const stride = strideOf(1, aggregates);
  return kernelCache(memory).get(`flush${stride}`, () => {
    const writer = new KernelWriter(memory, []);
    const { code } = writer;
    const cells: Record<string, number> = {};
    for (const name of ["table", "list", "target", "bucket"]) cells[name] = writer.cell();
    cells.count = writer.cellCount;
    const [table, list, target] = ["table", "list", "target"].map((name) => writer.loadCell("i32", cells[name]));
    const bucket = writer.loadCell("i64", cells.bucket);
    const slot = code.local("i32"), out = code.local("i32");
    writer.scalarRows(undefined, [], (row) => {
      code.get(list).get(row).i32(2).op("i32.shl").op("i32.add").memory("i32.load").i32(stride).op("i32.mul").get(table)
        .op("i32.add").set(slot);
      code.get(row).i32(stride + 8).op("i32.mul").get(target).op("i32.add").tee(out).get(bucket).memory("i64.store");
      for (let offset = 0; offset < stride; offset += 8) {
        code.get(out).get(slot).memory("i64.load", offset).memory("i64.store", offset + 8);
      }
      code.get(slot).i64(0n).memory("i64.store");
    });
    code.get(writer.end);
    return { bytes: writer.finish(), cells };
  });
}

/**
 * Aggregates many short runs, each into its own record: (bucket, states), where the last state is the row count.
 * Records without rows are removed. Cells: starts, ends, runs, records, continued (1: the first run continues the
 * record that is already there). Result: the number of records.
 */
export function runsKernel(
  memory: WebAssembly.Memory,
  inputs: readonly Input[],
  predicate: IrNode | undefined,
  aggregates: readonly AggregateShape[],
): CompiledKernel {
  const key = `runs|${inputShape(inputs)}|${predicate ? shapeOf(predicate) : ""}|${aggregateKey(aggregates)}`;
  return kernelCache(memory).get(key, () => {
    const writer = new KernelWriter(memory, inputs);
    const { code } = writer;
    const cells: Record<string, number> = {};
    for (const name of ["starts", "ends", "runs", "records", "continued"]) cells[name] = writer.cell();
    cells.count = writer.cellCount;
    const [starts, ends, runs, base, continued] = ["starts", "ends", "runs", "records", "continued"].map((name) =>
      writer.loadCell("i32", cells[name])
    );
    const records = new Records(writer, aggregates, 1);
    const stride = strideOf(1, aggregates);
    const run = code.local("i32"),
      record = code.local("i32"),
      bound = code.local("i32"),
      kept = code.local("i32"),
      target = code.local("i32");
    const eachRun = (body: () => void) =>
      code.block((done) =>
        code.loop((again) => {
          code.get(run).get(runs).op("i32.ge_s").brIf(done);
          body();
          code.get(run).i32(1).op("i32.add").set(run).br(again);
        })
      );
    const recordOf = (index: number) => code.get(index).i32(stride).op("i32.mul").get(base).op("i32.add");
    const endOf = (index: number) => code.get(ends).get(index).i32(2).op("i32.shl").op("i32.add").memory("i32.load");

    code.get(continued).set(run);
    eachRun(() => {
      recordOf(run).tee(record);
      code.get(starts).get(run).i32(3).op("i32.shl").op("i32.add").memory("i64.load").memory("i64.store");
      records.initialise(record);
    });
    code.i32(0).set(run);
    code.get(base).set(record);
    endOf(run).set(bound);
    writer.scalarRows(predicate, records.nodes, (row) => {
      code.get(row).get(bound).op("i32.ge_s").if(() => {
        code.loop((again) => {
          code.get(run).i32(1).op("i32.add").set(run);
          endOf(run).tee(bound).get(row).op("i32.le_s").brIf(again);
        });
        recordOf(run).set(record);
      });
      records.update(record);
    });
    code.i32(0).set(run);
    eachRun(() => {
      recordOf(run).tee(record).memory("i64.load", stride - 8).op("i64.eqz").op("i32.eqz").if(() => {
        recordOf(kept).tee(target).get(record).op("i32.ne").if(() =>
          code.get(target).get(record).i32(stride).memoryCopy()
        );
        code.get(kept).i32(1).op("i32.add").set(kept);
      });
    });
    code.get(kept);
    return { bytes: writer.finish(), cells };
  });
}
