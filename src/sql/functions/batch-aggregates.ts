/** Aggregates with a larger state: texts, distinct values, lists. */
import type {
  BatchAggregate,
  BatchAggregateState,
  BatchColumn,
  BatchOut,
  FunctionContext,
  FunctionEntry,
  FunctionMemory,
} from "./entry.ts";
import { batchEntry } from "./batch-entry.ts";
import { TEXTS, TIMES, withExamples } from "./nodes.ts";
import { LAYOUT_WIDTH, layoutOf, NULL_I64 } from "../../types/mod.ts";
import { keptText } from "./kept-texts.ts";
import { grownBytes } from "./sizes.ts";
import { HALF, type MemoryViews, offsetOf, viewOf, viewsOf } from "./memory-views.ts";
import { ValueTable } from "./value-table.ts";

function aggregate(
  name: string,
  args: FunctionEntry["args"],
  returns: FunctionEntry["returns"],
  summary: string,
  create: BatchAggregate["create"],
  more: Partial<FunctionEntry> = {},
): FunctionEntry {
  return batchEntry(name, args, returns, summary, undefined, [], { aggregate: { kind: "batch", create }, ...more });
}

/** Like `aggregate`, with symbols as codes. */
function distinctAggregate(...parts: Parameters<typeof aggregate>): FunctionEntry {
  const made = aggregate(...parts);
  return { ...made, aggregate: { ...made.aggregate as BatchAggregate, codes: true } };
}

/** The aggregate, which keeps a text. */
function ofTexts(made: FunctionEntry): FunctionEntry {
  return { ...made, aggregate: { ...made.aggregate as BatchAggregate, inRecords: keptText(made.name) } };
}

/** The aggregate, if its result depends on the order of rows. */
function inOrder(made: FunctionEntry): FunctionEntry {
  return { ...made, aggregate: { ...made.aggregate as BatchAggregate, ordered: true } };
}

const NO_BYTES = new Uint8Array(0);

const groupOf = (groups: Int32Array | undefined, row: number): number => (groups === undefined ? 0 : groups[row]);

/** In `KeptState`, the length of NULL. */
const NULL_LENGTH = -1;
/** Loops copy fewer bytes faster. */
const SHORT_BYTES = 64;

/** One text or value of several words for each group: first, last, smallest or greatest. All are in one growing byte string. */
class KeptState implements BatchAggregateState {
  private bytes: Uint8Array<ArrayBuffer> = NO_BYTES;
  private used = 0;
  /** By group, as long as it has a value: where it begins, its length, and how much room it has. */
  private readonly starts: number[] = [];
  private readonly lengths: (number | undefined)[] = [];
  private readonly rooms: number[] = [];
  private readonly views: MemoryViews;
  private batches = 0;
  /** The last batch in which a group has got its last row. */
  private readonly doneIn: number[] = [];

  /** `width`: bytes of a value; 0 for texts. */
  constructor(
    private readonly width: number,
    private readonly mode: "first" | "last" | "min" | "max",
    private readonly skipNulls: boolean,
    private readonly context: FunctionContext,
  ) {
    this.views = viewsOf(context.heap.u8);
  }

  update(groups: Int32Array | undefined, [column]: BatchColumn[], rowCount: number): void {
    const { mode, lengths } = this;
    if (mode === "last") return this.updateLast(groups, column, rowCount);
    if (mode === "first" && groups === undefined && lengths[0] !== undefined) return;
    for (let row = 0; row < rowCount; row++) {
      const group = groupOf(groups, row);
      if (mode !== "first" || lengths[group] === undefined) this.offer(group, column, row);
    }
  }

  /** From the last row on, so that only one row of a group is copied. */
  private updateLast(groups: Int32Array | undefined, column: BatchColumn, rowCount: number): void {
    const { doneIn } = this, batch = ++this.batches;
    for (let row = rowCount - 1; row >= 0; row--) {
      const group = groupOf(groups, row);
      if (doneIn[group] === batch || this.skipNulls && column.isNull(row)) continue;
      this.offer(group, column, row);
      if (groups === undefined) return;
      doneIn[group] = batch;
    }
  }

  private offer(group: number, column: BatchColumn, row: number): void {
    const { width, views } = this;
    if (width === 0) {
      return this.take(group, viewOf(views, column, row), offsetOf(column, row), column.values[2 * row + 1]);
    }
    const address = column.address + width * row, isHigh = address >= HALF;
    const length = column.isNull(row) ? NULL_LENGTH : width;
    this.take(group, isHigh ? views.high : views.low, isHigh ? address - HALF : address, length);
  }

  /** Keeps the value from[at … at + length) if it is better than that of the group. */
  private take(group: number, from: Uint8Array, at: number, length: number): void {
    if (length < 0 && this.skipNulls || !this.isBetter(group, from, at, length)) return;
    if (length > (this.rooms[group] ?? 0)) this.makeRoom(group, length);
    const { bytes } = this, start = this.starts[group];
    if (length > SHORT_BYTES) bytes.set(from.subarray(at, at + length), start);
    else for (let k = 0; k < length; k++) bytes[start + k] = from[at + k];
    this.lengths[group] = length;
  }

  private isBetter(group: number, from: Uint8Array, at: number, length: number): boolean {
    const { mode, bytes } = this, now = this.lengths[group];
    if (now === undefined || mode === "last") return true;
    if (mode === "first") return false;
    const both = Math.min(length, now), start = this.starts[group];
    let k = 0;
    while (k < both && from[at + k] === bytes[start + k]) k++;
    const difference = k < both ? from[at + k] - bytes[start + k] : length - now;
    return mode === "min" ? difference < 0 : difference > 0;
  }

  /** A value that replaces a shorter one gets more, so that the bytes of former values do not add up. */
  private makeRoom(group: number, length: number): void {
    const room = this.lengths[group] === undefined ? length : 2 * length, end = this.used + room;
    this.bytes = grownBytes(this.bytes, this.used, end, this.context.memory);
    this.starts[group] = this.used;
    this.rooms[group] = room;
    this.used = end;
  }

  merge(later: BatchAggregateState, mapping: Int32Array): void {
    const { bytes, starts, lengths } = later as KeptState;
    lengths.forEach((length, group) => {
      if (length !== undefined) this.take(mapping[group], bytes, starts[group] ?? 0, length);
    });
  }

  finish(out: BatchOut, groupCount: number): void {
    for (let group = 0; group < groupCount; group++) {
      const length = this.lengths[group] ?? NULL_LENGTH, start = this.starts[group] ?? 0;
      const value = this.bytes.subarray(start, start + length);
      if (length < 0) out.setNull(group);
      else if (this.width === 0) out.setText(group, value);
      else new Uint8Array(out.values.buffer, out.address + this.width * group, this.width).set(value);
    }
  }

  sizeBytes(): number {
    return this.bytes.length + this.lengths.length * 32;
  }
}

const entries: FunctionEntry[] = [];

const textArgs = [{ name: "value", type: "text" }];
const WORDS: [name: string, mode: "first" | "last" | "min" | "max", skipNulls: boolean, summary: string][] = [
  ["first", "first", false, "The value of the first row, even if it is null."],
  ["last", "last", false, "The value of the last row, even if it is null."],
  ["first_not_null", "first", true, "The first value that is not null."],
  ["last_not_null", "last", true, "The last value that is not null."],
  ["min", "min", true, "The smallest value that is not null."],
  ["max", "max", true, "The greatest value that is not null."],
];
for (const [name, mode, skipNulls, summary] of WORDS) {
  const extreme = mode === "min" || mode === "max";
  const orderedOrNot = extreme ? (made: FunctionEntry) => made : inOrder;
  for (const type of TEXTS) {
    if (type === "SYMBOL" && !extreme) continue; // the fused aggregates keep codes
    const returns = extreme && type !== "VARCHAR" ? "STRING" : type;
    entries.push(
      ofTexts(orderedOrNot(
        aggregate(
          name,
          [{ name: "value", type }],
          returns,
          summary,
          (_, __, context) => new KeptState(0, mode, skipNulls, context),
        ),
      )),
    );
  }
  if (!extreme) {
    entries.push(
      inOrder(
        aggregate(
          name,
          [{ name: "value", type: "UUID" }],
          "UUID",
          summary,
          (_, __, context) => new KeptState(16, mode, skipNulls, context),
        ),
      ),
    );
  }
}

for (const [name, mode, skipNulls, summary] of WORDS) {
  if (mode === "min" || mode === "max") continue;
  entries.push(
    inOrder(aggregate(
      name,
      [{ name: "value", type: "wide" }],
      (types) => types[0],
      summary,
      ([type], _, context) =>
        new KeptState(layoutOf(type) === "text" ? 0 : LAYOUT_WIDTH[layoutOf(type)], mode, skipNulls, context),
    )),
  );
}

class CountWide implements BatchAggregateState {
  counts: number[] = [];
  update(groups: Int32Array | undefined, [column]: BatchColumn[], rowCount: number): void {
    for (let row = 0; row < rowCount; row++) {
      const isNull = column.isNull(row);
      const group = groupOf(groups, row);
      this.counts[group] = (this.counts[group] ?? 0) + (isNull ? 0 : 1);
    }
  }
  merge(later: BatchAggregateState, mapping: Int32Array): void {
    (later as CountWide).counts.forEach((count, group) =>
      this.counts[mapping[group]] = (this.counts[mapping[group]] ?? 0) + count
    );
  }
  finish(out: BatchOut, groupCount: number): void {
    for (let group = 0; group < groupCount; group++) out.values[group] = BigInt(this.counts[group] ?? 0);
  }
  sizeBytes(): number {
    return this.counts.length * 8;
  }
}
entries.push(
  aggregate(
    "count",
    [{ name: "value", type: "UUID" }],
    "LONG",
    "The number of rows in which the value is not null.",
    () => new CountWide(),
  ),
);

entries.push(
  aggregate(
    "count",
    [{ name: "value", type: "wide" }],
    "LONG",
    "The number of rows in which the value is not null.",
    () => new CountWide(),
  ),
);

/** Distinct values of each group. */
class DistinctState implements BatchAggregateState {
  readonly table: ValueTable;
  constructor(
    type: string,
    context: FunctionContext,
    private readonly write: (table: ValueTable, out: BatchOut, groupCount: number) => void,
    counting = false,
  ) {
    this.table = new ValueTable(type, context, counting);
  }
  update(groups: Int32Array | undefined, [column]: BatchColumn[], rowCount: number): void {
    this.table.add(groups, column, rowCount);
  }
  merge(later: BatchAggregateState, mapping: Int32Array): void {
    this.table.merge((later as DistinctState).table, mapping);
  }
  finish(out: BatchOut, groupCount: number): void {
    this.write(this.table, out, groupCount);
  }
  sizeBytes(): number {
    return this.table.sizeBytes();
  }
}

function writeCounts(table: ValueTable, out: BatchOut, groupCount: number): void {
  const counts = new Float64Array(groupCount);
  for (let entry = 0; entry < table.count; entry++) counts[table.group(entry)]++;
  for (let group = 0; group < groupCount; group++) out.values[group] = BigInt(counts[group]);
}

/** Writes the most frequent value of each group; of equally frequent values, the one that came first. */
function writeModes(table: ValueTable, out: BatchOut, groupCount: number): void {
  const best = new Int32Array(groupCount).fill(-1);
  for (let entry = 0; entry < table.count; entry++) {
    const now = best[table.group(entry)];
    if (now < 0 || table.counts[entry] > table.counts[now]) best[table.group(entry)] = entry;
  }
  for (let group = 0; group < groupCount; group++) {
    if (best[group] < 0) out.setNull(group);
    else table.write(best[group], out, group);
  }
}

const DISTINCT = ["BYTE", "SHORT", "CHAR", "INT", "LONG", "FLOAT", "DOUBLE", ...TIMES, ...TEXTS, "UUID", "IPv4"];
const countDistinct = (type: string) =>
  distinctAggregate(
    "count_distinct",
    [{ name: "value", type }],
    "LONG",
    "The number of distinct values that are not null.",
    ([type], _, context) => new DistinctState(type, context, writeCounts),
    { examples: type === "LONG" ? [{ sql: "SELECT count_distinct(x % 3) FROM long_sequence(10)", gives: 3 }] : [] },
  );
for (const type of DISTINCT) {
  entries.push(
    countDistinct(type),
    distinctAggregate(
      "approx_count_distinct",
      [{ name: "value", type }, { name: "precision", type: "INT", constant: true, optional: true }],
      "LONG",
      "The number of distinct values that are not null. This server counts them exactly.",
      ([type], _, context) => new DistinctState(type, context, writeCounts),
    ),
  );
}
entries.push(countDistinct("BOOLEAN"), countDistinct("wide"));
const isTime = (type: string) => type === "DATE" || type === "TIMESTAMP" || type === "TIMESTAMP_NS";
/** Types whose mode is computed as a wider type. */
const WIDENED = new Set(["BYTE", "SHORT", "INT", "FLOAT", "CHAR"]);
for (const type of [...DISTINCT, "BOOLEAN"]) {
  if (WIDENED.has(type)) continue;
  entries.push(
    inOrder(distinctAggregate(
      "mode",
      [{ name: "value", type }],
      type === "SYMBOL" ? "SYMBOL_TEXT" : isTime(type) ? "LONG" : type,
      isTime(type) ? "The most frequent value, as a number of its unit." : "The most frequent value.",
      ([type], _, context) => new DistinctState(type, context, writeModes, true),
    )),
  );
}

/** Concatenates the texts of each group with a delimiter, in one growing byte string for each group. */
class JoinState implements BatchAggregateState {
  parts: (Uint8Array<ArrayBuffer> | undefined)[] = [];
  used: number[] = [];
  private total = 0;
  constructor(private readonly delimiter: Uint8Array, private readonly memory: FunctionMemory) {}
  append(group: number, piece: Uint8Array): void {
    const now = this.parts[group];
    const start = now === undefined ? 0 : this.used[group] + this.delimiter.length;
    const end = start + piece.length;
    const buffer = grownBytes(
      now ?? NO_BYTES,
      now === undefined ? 0 : this.used[group],
      Math.max(32, end),
      this.memory,
    );
    if (buffer !== now) {
      this.total += buffer.length - (now?.length ?? 0);
      this.parts[group] = buffer;
    }
    if (now !== undefined) buffer.set(this.delimiter, this.used[group]);
    buffer.set(piece, start);
    this.used[group] = end;
  }
  update(groups: Int32Array | undefined, [column]: BatchColumn[], rowCount: number): void {
    for (let row = 0; row < rowCount; row++) {
      const piece = column.bytes(row);
      if (piece !== undefined) this.append(groupOf(groups, row), piece);
    }
  }
  merge(later: BatchAggregateState, mapping: Int32Array): void {
    const { parts, used } = later as JoinState;
    parts.forEach((part, group) => {
      if (part !== undefined) this.append(mapping[group], part.subarray(0, used[group]));
    });
  }
  finish(out: BatchOut, groupCount: number): void {
    for (let group = 0; group < groupCount; group++) {
      out.setText(group, this.parts[group]?.subarray(0, this.used[group]));
    }
  }
  sizeBytes(): number {
    return this.total + this.parts.length * 32;
  }
}

const delimiterArg = { name: "delimiter", type: "text", constant: true };
const checkDelimiter: FunctionEntry["check"] = ([, delimiter]) =>
  typeof delimiter === "string" && [...delimiter].length === 1
    ? undefined
    : { argument: 1, message: "the delimiter must be one character" };
const bytesOf = (constant: unknown) => new TextEncoder().encode(String(constant ?? ""));
const joined = (types: string[]) => (types[0] === "VARCHAR" ? "VARCHAR" : "STRING");
entries.push(
  inOrder(aggregate(
    "string_agg",
    [...textArgs, delimiterArg],
    joined,
    "The texts that are not null, joined by a delimiter.",
    (_, constants, { memory }) => new JoinState(bytesOf(constants[1]), memory),
    { check: checkDelimiter },
  )),
  inOrder(distinctAggregate(
    "string_distinct_agg",
    [...textArgs, delimiterArg],
    joined,
    "The distinct texts that are not null, joined by a delimiter in order of first appearance.",
    ([type], constants, context) =>
      new DistinctState(type, context, (table, out, groupCount) => {
        const join = new JoinState(bytesOf(constants[1]), context.memory);
        for (let entry = 0; entry < table.count; entry++) join.append(table.group(entry), table.bytes(entry));
        join.finish(out, groupCount);
      }),
    { check: checkDelimiter },
  )),
);

/** Sum of ln x, the count, and whether any value was not positive. */
class GeometricState implements BatchAggregateState {
  logs: number[] = [];
  counts: number[] = [];
  private add(group: number, log: number, count: number): void {
    this.logs[group] = (this.logs[group] ?? 0) + log;
    this.counts[group] = (this.counts[group] ?? 0) + count;
  }
  update(groups: Int32Array | undefined, [column]: BatchColumn[], rowCount: number): void {
    for (let row = 0; row < rowCount; row++) {
      const value = column.values[row];
      if (Number.isFinite(value)) this.add(groupOf(groups, row), value > 0 ? Math.log(value) : NaN, 1);
    }
  }
  merge(later: BatchAggregateState, mapping: Int32Array): void {
    const { logs, counts } = later as GeometricState;
    logs.forEach((log, group) => this.add(mapping[group], log, counts[group]));
  }
  finish(out: BatchOut, groupCount: number): void {
    for (let group = 0; group < groupCount; group++) {
      out.values[group] = this.counts[group] ? Math.exp(this.logs[group] / this.counts[group]) : NaN;
    }
  }
  sizeBytes(): number {
    return this.logs.length * 16;
  }
}
entries.push(
  aggregate(
    "geomean",
    [{ name: "value", type: "DOUBLE" }],
    "DOUBLE",
    "The geometric mean. Null if any value is zero or negative.",
    () => new GeometricState(),
  ),
);

/** Length of the path through points in row order: the length, the first and the last point of each group. */
class DistanceState implements BatchAggregateState {
  lengths: number[] = [];
  first: ([number, number] | undefined)[] = [];
  last: ([number, number] | undefined)[] = [];
  private go(group: number, latitude: number, longitude: number): void {
    const from = this.last[group];
    if (from === undefined) {
      this.first[group] = [latitude, longitude];
      this.lengths[group] = 0;
    } else this.lengths[group] += haversineKilometres(from[0], from[1], latitude, longitude);
    this.last[group] = [latitude, longitude];
  }
  update(groups: Int32Array | undefined, [latitudes, longitudes, times]: BatchColumn[], rowCount: number): void {
    for (let row = 0; row < rowCount; row++) {
      const latitude = latitudes.values[row], longitude = longitudes.values[row];
      if (latitude !== latitude || longitude !== longitude || times.values[row] === NULL_I64) continue;
      this.go(groupOf(groups, row), latitude, longitude);
    }
  }
  merge(later: BatchAggregateState, mapping: Int32Array): void {
    const { lengths, first, last } = later as DistanceState;
    first.forEach((point, group) => {
      if (point === undefined) return;
      this.go(mapping[group], ...point);
      this.lengths[mapping[group]] += lengths[group];
      this.last[mapping[group]] = last[group];
    });
  }
  finish(out: BatchOut, groupCount: number): void {
    for (let group = 0; group < groupCount; group++) out.values[group] = this.lengths[group] ?? 0;
  }
  sizeBytes(): number {
    return this.lengths.length * 128;
  }
}

/** The radius that the dialect uses. */
const EARTH_RADIUS_KM = 6371.088;

/** Distance of two points in degrees. Source: Sinnott, "Virtues of the Haversine", 1984. */
function haversineKilometres(latitude: number, longitude: number, latitude2: number, longitude2: number): number {
  const radians = Math.PI / 180;
  const dLatitude = (latitude2 - latitude) * radians / 2, dLongitude = (longitude2 - longitude) * radians / 2;
  const h = Math.sin(dLatitude) ** 2 +
    Math.cos(latitude * radians) * Math.cos(latitude2 * radians) * Math.sin(dLongitude) ** 2;
  return 2 * EARTH_RADIUS_KM * Math.asin(Math.sqrt(h));
}
entries.push(
  inOrder(aggregate(
    "haversine_dist_deg",
    [{ name: "latitude", type: "DOUBLE" }, { name: "longitude", type: "DOUBLE" }, { name: "time", type: "TIMESTAMP" }],
    "DOUBLE",
    "The distance travelled along the points in row order, in kilometres.",
    () => new DistanceState(),
  )),
);

export const batchAggregateFunctions = withExamples(entries, {
  approx_count_distinct: [["SELECT approx_count_distinct(x % 3) FROM long_sequence(10)", 3]],
  mode: [["SELECT mode(x % 2) FROM long_sequence(3)", 1]],
  string_agg: [["SELECT string_agg(x::string, ',') FROM long_sequence(3)", "1,2,3"]],
  string_distinct_agg: [["SELECT string_distinct_agg((x % 2)::string, ',') FROM long_sequence(3)", "1,0"]],
  geomean: [["SELECT geomean(x) FROM long_sequence(2)", 1.4142135623730951]],
});
