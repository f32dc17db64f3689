/**
 * Kernels that look up rows in a table beyond the caches first load what many rows will read. A lookup has so many instructions that
 * a few of them fill the processor's reorder buffer, so it waits for one cache line after the other. Loops that only load have many lines
 * under way. WebAssembly has no instruction that prefetches.
 */
import type { IrNode } from "./ir.ts";
import type { KernelWriter } from "./kernel.ts";

/** Rows whose lines are loaded together. */
const ROWS = 256;
/** Of a list of rows: the number of each, and its place. */
export const ROWS_AHEAD_BYTES = 2 * 4 * ROWS;

/** The third-level cache holds smaller tables, so that loading ahead takes 1.07 of the time. */
const TABLE_BYTES_MIN = 4 << 20;
export function isLoadedAhead(tableBytes: number): boolean {
  return tableBytes >= TABLE_BYTES_MIN;
}

/** Cells of the kernel. `ahead`: address of `ROWS_AHEAD_BYTES`. `loaded`: compilers leave out loads of which nothing is used. */
export interface AheadCells {
  ahead: number;
  loaded: number;
}

export interface Lookup {
  predicate: IrNode | undefined;
  /** Inputs of `pushPlace`. */
  nodes: readonly IrNode[];
  /** Pushes an i32 that says where a row is looked up. */
  pushPlace: () => void;
  /** Replaces the place on the stack by an i32 that its lookup reads. */
  load: () => void;
  /** Looks the row up. `pushPlace` pushes its place. The inputs of the row are not loaded any more. */
  body: (row: number, pushPlace: () => void) => void;
}

/** Emits the loops over all rows that pass. */
export function lookUpRows(
  writer: KernelWriter,
  cells: AheadCells,
  { predicate, nodes, pushPlace, load, body }: Lookup,
): void {
  const { code } = writer, first = writer.loadCell("i32", cells.ahead);
  const next = code.local("i32"), at = code.local("i32"), row = code.local("i32"), loaded = code.local("i32");
  const pushListed = () => code.get(at).memory("i32.load", 4);
  const listed = (each: () => void) => {
    code.get(first).set(at);
    code.block((done) =>
      code.loop((again) => {
        code.get(at).get(next).op("i32.ge_u").brIf(done);
        each();
        code.get(at).i32(8).op("i32.add").set(at).br(again);
      })
    );
  };
  code.get(first).set(next);
  writer.scalarRows(
    predicate,
    nodes,
    (row) => {
      code.get(next);
      pushPlace();
      code.memory("i32.store", 4).get(next).get(row).memory("i32.store").get(next).i32(8).op("i32.add").set(next);
    },
    {
      rowCount: ROWS,
      end: () => {
        listed(() => {
          pushListed();
          load();
          code.get(loaded).op("i32.add").set(loaded);
        });
        writer.storeCell("i32", cells.loaded, loaded);
        listed(() => {
          code.get(at).memory("i32.load").set(row);
          body(row, pushListed);
        });
        code.get(first).set(next);
      },
    },
  );
}
