/**
 * From result batches to what leaves the engine: encoded rows for a wire, or rows on their way into a table.
 * Runs where the batches are made: in the leading worker, or on main for small queries.
 */
import type { Encoding, ResultColumn } from "../door.ts";
import { packAppendBatch, toAppendBatch } from "../engine/mod.ts";
import type { Batch } from "../engine/contract.ts";
import type { SharedHeap } from "../storage/heap.ts";
import { createEncoder } from "../wire/encode/mod.ts";

/** Plain data, so that it can be posted to a worker. */
export type OutputOptions =
  | { kind: "rows"; encoding: Encoding; window?: { first: number; count: number }; countAll?: boolean }
  /** `targets`: the table columns' type tags. */
  | { kind: "append"; targets: string[] };

export interface Output {
  /** Bytes of the batch's rows that are wanted; undefined when there are none. */
  encode(batch: Batch): { bytes: Uint8Array; rows: number } | undefined;
  /** No later batch changes anything: the query may stop. */
  readonly finished: boolean;
  /** Rows seen so far. */
  readonly totalRows: number;
}

export function createOutput(options: OutputOptions, columns: readonly ResultColumn[], heap: SharedHeap): Output {
  return options.kind === "append" ? new AppendOutput(options.targets, heap) : new RowsOutput(options, columns, heap);
}

class AppendOutput implements Output {
  readonly finished = false;
  totalRows = 0;
  private readonly columnIds: number[];

  constructor(private readonly targets: string[], private readonly heap: SharedHeap) {
    this.columnIds = targets.map((_, i) => i);
  }

  encode(batch: Batch): { bytes: Uint8Array; rows: number } | undefined {
    this.totalRows += batch.rowCount;
    if (batch.rowCount === 0) return undefined;
    return {
      bytes: packAppendBatch(toAppendBatch(batch, this.columnIds, this.targets, this.heap)),
      rows: batch.rowCount,
    };
  }
}

class RowsOutput implements Output {
  totalRows = 0;
  finished = false;
  private encoded = 0;
  private readonly encoder: ReturnType<typeof createEncoder>;
  private readonly first: number;
  private readonly end: number;

  constructor(
    private readonly options: Extract<OutputOptions, { kind: "rows" }>,
    columns: readonly ResultColumn[],
    heap: SharedHeap,
  ) {
    this.encoder = createEncoder(options.encoding, [...columns], heap);
    this.first = options.window?.first ?? 0;
    this.end = options.window ? options.window.first + options.window.count : Infinity;
  }

  encode(batch: Batch): { bytes: Uint8Array; rows: number } | undefined {
    const from = Math.max(0, this.first - this.totalRows);
    const to = Math.min(batch.rowCount, this.end - this.totalRows);
    this.totalRows += batch.rowCount;
    if (this.totalRows >= this.end && !this.options.countAll) this.finished = true;
    if (to <= from) return undefined;
    const bytes = this.encoder.encode(batch, from, to - from, this.encoded === 0);
    this.encoded += to - from;
    return { bytes, rows: to - from };
  }
}
