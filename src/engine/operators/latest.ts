/**
 * LATEST ON: the last row of each key by time (among equal times the last one in the table), in order of time.
 */
import type { Column, LatestNode, ScanNode } from "../../sql/plan.ts";
import { ROW_BITS, type ScanSource, type SegmentSource } from "../../storage/contract.ts";
import { ColumnStore, OutputColumns, POLL_ROWS, Workspace } from "../columns.ts";
import { gather } from "../columns/gather.ts";
import { type Batch, type Changes, MORSEL_ROWS, type Operator, type QueryContext } from "../contract.ts";
import { KeyTable } from "../keys.ts";
import { hasNulls, scanDictionaries, sourceOf } from "../physical/facts.ts";
import { keysMax } from "../physical/latest.ts";
import type { Grouping, LatestWay } from "../physical/plan.ts";
import { LOOKUP_SYMBOLS_MAX } from "../physical/thresholds.ts";
import { freeOrderWords, orderWords, radixSort } from "../order.ts";
import { typesOf } from "../physical/reading.ts";
import { createGrouping } from "./aggregate.ts";
import type { OpenBase } from "./base-plan.ts";
import { assertingContract } from "./contract.ts";
import { Expressions } from "./input.ts";
import { PlacedRows, placeOf } from "./placed-rows.ts";
import { ScanReader } from "./scan.ts";

export function createLatest(
  node: LatestNode,
  way: LatestWay,
  open: OpenBase,
  input: () => Operator,
  context: QueryContext,
): Operator {
  const grouped = (groups: Grouping) => assertingContract(createGrouping(groups, open, input, context));
  switch (way.kind) {
    case "by symbol":
      return new LatestBySymbol(node, sourceOf(way.scan, context), way, context);
    case "newest first":
      return new LatestOfReversed(node, input(), way, way.groups && grouped(way.groups), context);
    case "groups":
      return new LatestOfGroups(node, way.scan, grouped(way.groups), context);
    case "all rows":
      return new LatestOfAll(node, input(), context);
  }
}

const OPERATOR = "latest on";

/** Rows of a segment that are read first. Each following run has four times as many. */
const FIRST_RUN_ROWS = 2_048;

/** The found rows. Without an order, they are output as they are. */
interface Found {
  store: ColumnStore;
  order?: Int32Array;
  rowCount: number;
}

/** Outputs found rows in an order. */
abstract class Latest implements Operator {
  readonly columns;
  protected readonly space: Workspace;
  private found?: Found;
  private output?: OutputColumns;
  private position = 0;

  constructor(protected readonly plan: LatestNode, protected readonly context: QueryContext) {
    this.columns = plan.columns;
    this.space = Workspace.of(context, OPERATOR);
  }

  protected abstract find(): Found;

  next(): Batch | undefined {
    const { store, order, rowCount } = this.found ??= this.find(), { position } = this;
    const n = Math.min(MORSEL_ROWS, rowCount - position);
    if (n <= 0) return undefined;
    this.position += n;
    if (order === undefined) return store.slice(position, n);
    this.output ??= new OutputColumns(typesOf(this.columns), this.space, n);
    const indices = order.subarray(position, position + n);
    for (let c = 0; c < this.columns.length; c++) this.output.gather(c, store.vectors[c], indices, n, false);
    return { rowCount: n, columns: this.output.vectors };
  }

  /** Finds the rows again at the next call. */
  protected findAgain(): void {
    this.found = undefined;
    this.position = 0;
  }

  /** Frees the found rows too. */
  protected releaseFound(): void {
    this.findAgain();
    this.output = undefined;
    this.space.release();
  }

  close(): void {
    this.space.release();
  }
}

type BySymbol = Extract<LatestWay, { kind: "by symbol" }>;

/**
 * Reads codes from the newest segment backwards until each symbol is found, then the other columns of the found rows.
 */
class LatestBySymbol extends Latest {
  private buffers?: { seen: Uint8Array; segments: Int32Array; rows: Int32Array; taken: Int32Array; store: ColumnStore };
  private scanned?: ScanReader;
  /** The codes that were left at the last lookup. */
  private left?: number[];

  rewind(): boolean {
    this.findAgain();
    this.buffers?.store.clear();
    return true;
  }

  rebind(changes: Changes): boolean {
    const scan = changes.scanOf(this.way.scan);
    this.source = sourceOf(scan, this.context);
    this.scanned?.rebind(scan);
    return true;
  }

  constructor(
    plan: LatestNode,
    private source: ScanSource,
    private readonly way: BySymbol,
    context: QueryContext,
  ) {
    super(plan, context);
  }

  private get symbolCount(): number {
    return this.source.dictionaries[this.way.key]?.count ?? 0;
  }

  private makeBuffers() {
    const { space, symbolCount } = this, count = symbolCount + 1;
    return {
      seen: space.bytes(count),
      segments: space.words(count),
      rows: space.words(count),
      taken: space.words(count),
      store: new ColumnStore(typesOf(this.columns), space),
    };
  }

  protected find() {
    const { context, source, symbolCount, way: { key, reader } } = this, { i32 } = context.heap;
    const scanned = this.scanned ??= new ScanReader(this.way.scan, new Set(), context);
    // Code c is at c + 1, null at 0. Rows are found newest first: index in `segments`, and row.
    const { seen, segments: foundSegments, rows: foundRows } = this.buffers ??= this.makeBuffers();
    seen.fill(0);
    this.left = undefined;
    let found = 0;
    const wanted = () => found < symbolCount + seen[0] || (seen[0] === 0 && hasNulls(source.segments, key));
    for (let s = source.segments.length - 1; s >= 0 && wanted(); s--) {
      const segment = source.segments.at(s)!;
      context.poll();
      const foundByIndex = this.lookUp(s, seen, found);
      if (foundByIndex !== undefined) {
        found = foundByIndex;
        continue;
      }
      let unseen = segment.rowCount === 0 ? 0 : unseenIn(segment, key, seen);
      if (unseen === 0) continue;
      if (segment.chunks[key] === undefined) {
        seen[0] = 1;
        foundSegments[found] = s;
        foundRows[found++] = segment.rowCount - 1;
        continue;
      }
      let from = segment.rowCount;
      for (let rowCount = FIRST_RUN_ROWS; from > 0 && unseen > 0; rowCount *= 4) {
        const to = from;
        from = Math.max(0, to - rowCount);
        const codes = scanned.column(s, key, { from, to }) >>> 2;
        for (let row = to - 1; row >= from && unseen > 0; row--) {
          const code = i32[codes + row];
          if (seen[code + 1] !== 0) continue;
          seen[code + 1] = 1;
          foundSegments[found] = s;
          foundRows[found++] = row;
          if (--unseen === 0) from = row;
        }
        scanned.rewind();
      }
      const rowsRead = segment.rowCount - from;
      context.countRead?.(rowsRead);
      context.analysis?.countTaken(reader, rowsRead);
    }
    return { store: this.fetch(found), rowCount: found };
  }

  /**
   * Looks up the rows of the symbols that are left, if these are few in the segment. Returns the number of rows found in all so far; undefined
   * if the segment has to be read.
   */
  private lookUp(segment: number, seen: Uint8Array, found: number): number | undefined {
    const { context: { pool, analysis }, source, way: { key, reader, scan } } = this,
      { segments, rows } = this.buffers!;
    if (2 * found < seen.length || !pool.isIndexed(source, segment, key)) return undefined;
    const isLeft = (code: number) => seen[code + 1] === 0;
    this.left = this.left?.filter(isLeft) ?? Array.from(seen, (_, at) => at - 1).filter(isLeft);
    const wanted = pool.present(source, segment, key, this.left) ?? this.left;
    if (wanted.length > LOOKUP_SYMBOLS_MAX) return undefined;
    analysis?.countLookup(scan.id, wanted.length === 0);
    if (wanted.length === 0) return found;
    const ofSegment = pool.find(source, segment, key, wanted, Infinity);
    if (ofSegment === undefined) return undefined;
    analysis?.countTaken(reader, ofSegment.count);
    for (let k = ofSegment.count - 1; k >= 0; k--) {
      const code = ofSegment.codes[k]!;
      if (seen[code + 1] !== 0) continue;
      seen[code + 1] = 1;
      segments[found] = segment;
      rows[found++] = ofSegment.rows[k]!;
    }
    return found;
  }

  /** Whole rows, oldest first. */
  private fetch(found: number): ColumnStore {
    const { context } = this, { segments: foundSegments, rows, taken, store } = this.buffers!;
    const scanned = this.scanned!, dictionaries = scanDictionaries(this.way.scan, this.source);
    dictionaries.forEach((dictionary, column) => store.vectors[column]!.dictionary = dictionary);
    store.reserve(found);
    for (let last = found; last > 0;) {
      const s = foundSegments[last - 1];
      let n = 0;
      while (last > 0 && foundSegments[last - 1] === s) taken[n++] = rows[--last];
      context.poll();
      store.appendWritten(n, (column, target) => this.write(scanned, s, column, n, target));
      scanned.rewind();
      scanned.countFrames();
    }
    return store;
  }

  /** Writes a column of the taken rows of a segment. */
  private write(scanned: ScanReader, segment: number, column: number, count: number, target: number): void {
    const { context: { pool, heap }, source } = this, { taken, store } = this.buffers!;
    if (pool.gatherRows(source, segment, column, taken.byteOffset, count, target)) return;
    const address = scanned.column(segment, column, { from: taken[0]!, to: taken[count - 1]! + 1 });
    gather(heap, store.types[column]!, address, taken, count, target, false);
  }

  override close(): void {
    this.scanned?.close();
    super.close();
  }
}

/** By the statistics of the segment: the most unseen codes, and null, that its rows can have. */
function unseenIn({ rowCount, chunks }: SegmentSource, key: number, seen: Uint8Array): number {
  const chunk = chunks[key];
  if (chunk === undefined) return seen[0] === 0 ? 1 : 0;
  const { nullCount, min, max } = chunk.stats;
  let count = nullCount > 0 && seen[0] === 0 ? 1 : 0;
  if (min === undefined || max === undefined) return nullCount < rowCount ? rowCount : count;
  for (let code = Number(min), end = Number(max); code <= end && count < rowCount; code++) {
    if (seen[code + 1] === 0) count++;
  }
  return count;
}

/** Rows that are read backwards before all are grouped, at least, and as a fraction of the table. */
const REVERSED_ROWS_MIN = 262_144, REVERSED_ROWS_SHARE = 16;

/** In reverse order, the first row of a key is its last one. */
class LatestOfReversed extends Latest {
  private scan: ScanNode;
  private readonly ofGroups?: LatestOfGroups;
  /** Some keys were not found by the rows that are read backwards. */
  private isGrouped = false;

  constructor(
    plan: LatestNode,
    private readonly input: Operator,
    private readonly way: Extract<LatestWay, { kind: "newest first" }>,
    groups: Operator | undefined,
    context: QueryContext,
  ) {
    super(plan, context);
    this.scan = way.scan;
    this.ofGroups = groups && new LatestOfGroups(plan, way.scan, groups, context);
  }

  override next(): Batch | undefined {
    if (!this.isGrouped) {
      const batch = super.next();
      if (!this.isGrouped) return batch;
      this.releaseFound();
    }
    return this.ofGroups!.next();
  }

  protected find() {
    const { plan, space, context, input, scan, way } = this, types = typesOf(input.columns);
    const keys = new Expressions(plan.keys, types, context);
    const table = new KeyTable(keys.types, space, () => context.poll());
    const store = new ColumnStore(types, space);
    const fresh = space.words(MORSEL_ROWS);
    try {
      const most = keysMax(scan, way.symbols, context), { rowCount } = sourceOf(scan, context);
      let rowsLeft = this.ofGroups === undefined
        ? Infinity
        : Math.max(REVERSED_ROWS_MIN, rowCount / REVERSED_ROWS_SHARE);
      while (table.count < most) {
        const batch = rowsLeft > 0 ? input.next() : undefined;
        if (batch === undefined) {
          this.isGrouped = rowsLeft <= 0;
          break;
        }
        context.poll();
        rowsLeft -= batch.rowCount;
        let seen = table.count, n = 0;
        const groups = table.groups(keys.run(batch), batch.rowCount, true);
        for (let row = 0; row < batch.rowCount; row++) {
          if (groups[row] !== seen) continue;
          seen++;
          fresh[n++] = row;
        }
        if (n > 0) store.appendRows(batch.columns, fresh, n);
      }
    } finally {
      keys.close();
    }
    const order = space.words(Math.max(1, store.rowCount));
    for (let i = 0; i < store.rowCount; i++) order[i] = store.rowCount - 1 - i;
    return { store, order, rowCount: store.rowCount };
  }

  rewind(): boolean {
    this.releaseFound();
    // The groups are large.
    return !this.isGrouped && this.input.rewind?.() === true;
  }

  rebind(changes: Changes): boolean {
    this.scan = changes.scanOf(this.scan);
    return this.ofGroups?.rebind(changes) !== false && this.input.rebind?.(changes) === true;
  }

  override close(): void {
    super.close();
    this.input.close();
    this.ofGroups?.close();
  }
}

/** The last row of each group, by its row id. */
class LatestOfGroups implements Operator {
  readonly columns: readonly Column[];
  private readonly rows: PlacedRows;
  private hasStarted = false;

  constructor(
    plan: LatestNode,
    private scan: ScanNode,
    /** Their last column is the row id. */
    private readonly groups: Operator,
    private readonly context: QueryContext,
  ) {
    this.columns = plan.columns;
    this.rows = new PlacedRows(scan, new Set(plan.columns.keys()), context, OPERATOR);
  }

  next(): Batch | undefined {
    if (!this.hasStarted) this.rows.start(this.places());
    this.hasStarted = true;
    return this.rows.next();
  }

  private places(): Float64Array<ArrayBuffer> {
    const { scan, groups, context, context: { heap: { u32 } } } = this, places: number[] = [];
    const indexes = new Map(Iterator.from(sourceOf(scan, context).segments).map(({ uid }, index) => [uid, index]));
    for (let batch = groups.next(); batch !== undefined; batch = groups.next()) {
      const ids = batch.columns.at(-1)!.address >>> 2;
      context.memory.need(batch.rowCount * Float64Array.BYTES_PER_ELEMENT, OPERATOR);
      for (let k = 0; k < batch.rowCount; k++) {
        const low = u32[ids + 2 * k]!, uid = u32[ids + 2 * k + 1]! * 2 ** (32 - ROW_BITS) + (low >>> ROW_BITS);
        places.push(placeOf(indexes.get(uid)!, low & (2 ** ROW_BITS - 1)));
      }
    }
    return Float64Array.from(places).sort();
  }

  rewind(): boolean {
    this.hasStarted = false;
    return this.groups.rewind?.() === true;
  }

  rebind(changes: Changes): boolean {
    this.scan = changes.scanOf(this.scan);
    this.rows.rebind(this.scan);
    return this.groups.rebind?.(changes) === true;
  }

  close(): void {
    this.groups.close();
    this.rows.close();
  }
}

/** Reads all rows and keeps one row for each key. */
class LatestOfAll extends Latest {
  constructor(plan: LatestNode, private readonly input: Operator, context: QueryContext) {
    super(plan, context);
  }

  protected find() {
    const { plan, space, context, input } = this, types = typesOf(input.columns), { i32 } = context.heap;
    const expressions = new Expressions([plan.time, ...plan.keys], types, context);
    const table = new KeyTable(plan.keys.map((key) => key.type), space, () => context.poll());
    const store = new ColumnStore([...types, plan.time.type], space);
    // By group: the row in the store, and the better row in the current batch.
    let storeRow = space.words(256),
      candidate = space.words(256),
      candidateBatch = space.words(256),
      low = space.words(256),
      high = space.words(256);
    let groupOf = space.words(MORSEL_ROWS), groupCount = 0;
    const winners = space.words(MORSEL_ROWS);
    const live = () => {
      const rows = space.words(Math.max(1, groupCount));
      let n = 0;
      for (let row = 0; row < store.rowCount; row++) if (storeRow[groupOf[row]] === row) rows[n++] = row;
      return rows;
    };
    try {
      for (let batch = input.next(), number = 0; batch !== undefined; batch = input.next(), number++) {
        context.poll();
        const [time, ...keys] = expressions.run(batch), times = time.address >>> 2;
        const groups = table.groups(keys, batch.rowCount, true);
        if (table.count > storeRow.length) {
          const length = Math.max(table.count, 2 * storeRow.length);
          storeRow = space.grow(storeRow, length);
          candidate = space.grow(candidate, length);
          candidateBatch = space.grow(candidateBatch, length);
          low = space.grow(low, length);
          high = space.grow(high, length);
        }
        for (let row = 0; row < batch.rowCount; row++) {
          if (row % POLL_ROWS === 0) context.poll();
          const group = groups[row], l = i32[times + row * 2] >>> 0, h = i32[times + row * 2 + 1];
          if (group >= groupCount) groupCount = group + 1;
          else if (h < high[group] || (h === high[group] && l < (low[group] >>> 0))) continue;
          low[group] = l;
          high[group] = h;
          candidate[group] = row;
          candidateBatch[group] = number;
        }
        let n = 0;
        const first = store.rowCount;
        if (first + batch.rowCount > groupOf.length) {
          groupOf = space.grow(groupOf, Math.max(first + batch.rowCount, 2 * groupOf.length));
        }
        for (let row = 0; row < batch.rowCount; row++) {
          const group = groups[row];
          if (candidate[group] !== row || candidateBatch[group] !== number) continue;
          storeRow[group] = first + n;
          groupOf[first + n] = group;
          winners[n++] = row;
        }
        store.appendRows([...batch.columns, time], winners, n);
        if (store.rowCount > 2 * groupCount + 4 * MORSEL_ROWS) {
          const rows = live();
          for (let i = 0; i < groupCount; i++) {
            groupOf[i] = groupOf[rows[i]];
            storeRow[groupOf[i]] = i;
          }
          store.compact(rows, groupCount);
          space.freeWords(rows);
        }
      }
    } finally {
      expressions.close();
    }
    const order = live(), poll = () => context.poll();
    const words = orderWords([store.vectors[types.length]], [{ descending: false }], store.rowCount, space, poll);
    radixSort(order, words, groupCount, space, poll);
    freeOrderWords(words, space);
    return { store, order, rowCount: groupCount };
  }

  rewind(): boolean {
    this.releaseFound();
    return this.input.rewind?.() === true;
  }

  rebind(changes: Changes): boolean {
    return this.input.rebind?.(changes) === true;
  }

  override close(): void {
    super.close();
    this.input.close();
  }
}
