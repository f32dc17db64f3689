/** Matches parsed lines to their table: converts the rows to the types of the table's columns. */
import { LineError } from "../../errors.ts";
import type { AppendBatch, AppendColumn, TableColumn, TableSchema } from "../../storage/contract.ts";
import { KIND, type LineColumn, type LineTable } from "./columns.ts";
import { columnOf, columnsOf } from "./schema.ts";
import { type Fitted, Source, words } from "./values/source.ts";
import { fitOf } from "./values/types.ts";

/** Converts the rows to the table's types. @throws {LineError} for the first line with a value that does not fit. */
export function fitToTable(lines: LineTable, schema: TableSchema): AppendBatch {
  const columns: AppendColumn[] = [];
  let fault: LineError | undefined;
  let timeField: LineColumn | undefined;
  const known = columnsOf(schema);
  for (const column of lines.columns) {
    const target = columnOf(known, column.name);
    if (target === undefined) throw new LineError(column.line, `table ${schema.name} has no column ${column.name}`);
    if (target.id === schema.timestampId) {
      timeField = column;
      continue;
    }
    try {
      columns.push({ columnId: target.id, ...fitColumn(column, lines, target) });
    } catch (error) {
      if (!(error instanceof LineError)) throw error;
      if (fault === undefined || error.line < fault.line) fault = error;
    }
  }
  if (fault !== undefined) throw fault;
  const time = schema.columns.find((column) => column.id === schema.timestampId);
  if (time !== undefined) columns.push({ columnId: time.id, values: fitTimes(lines, timeField, time) });
  else if (lines.timed === undefined || lines.timed.includes(1)) {
    const row = lines.timed === undefined ? 0 : lines.timed.indexOf(1);
    throw new LineError(
      lines.lines[row],
      `table ${schema.name} has no designated timestamp, but the line gives a time`,
    );
  }
  return { rowCount: lines.rowCount, columns };
}

function fitColumn(column: LineColumn, lines: LineTable, target: TableColumn): Fitted {
  const source = new Source(column, lines, target);
  const fit = fitOf(target.type);
  if (fit === undefined) {
    throw source.refuse(
      firstRow(column),
      `column ${target.name} has type ${target.type}, which is not supported in line protocol`,
    );
  }
  return fit(source);
}

function firstRow(column: LineColumn): number {
  return Math.max(0, column.kinds.findIndex((kind) => kind !== KIND.none));
}

/** Timestamps in the designated timestamp's unit. A field with its name is the row's time, as in QuestDB also if the line has another one. */
function fitTimes(lines: LineTable, field: LineColumn | undefined, target: TableColumn): Uint8Array {
  const inNanos = target.type === "TIMESTAMP_NS";
  let times = words(lines.times);
  if (inNanos) {
    const micros = longs(times);
    const nanos = new BigInt64Array(lines.rowCount);
    for (let row = 0; row < nanos.length; row++) {
      nanos[row] = micros[row] * 1_000n + BigInt(lines.timeNanos?.[row] ?? 0);
      if (micros[row] > 9_223_372_036_854_775n) {
        throw new LineError(lines.lines[row], `${micros[row]} us is out of range for TIMESTAMP_NS`);
      }
    }
    times = new Uint8Array(nanos.buffer);
  }
  if (field === undefined) return times;
  const source = new Source(field, lines, target), given = longs(fitOf(target.type)!(source).values);
  const ofRows = longs(times);
  source.forEach((row) => {
    ofRows[row] = given[row];
  });
  return times;
}

const longs = ({ buffer, byteOffset, byteLength }: Uint8Array): BigInt64Array =>
  new BigInt64Array(buffer, byteOffset, byteLength / 8);
