/**
 * A column that is converted to another type. The new values get an id of their own, so readers of older versions keep the old ones. The
 * stage has the new values of each segment, which come into the segments of the table at the end, together with the new definition. Commits go on meanwhile:
 * segments that are new, or that have other rows, are converted again, before the end as long as that becomes less.
 */
import { SqlError, SQLSTATE } from "../errors.ts";
import type { NewColumn } from "../sql/plan.ts";
import { assert } from "../assert.ts";
import type { Chunk } from "./chunks.ts";
import type { TableColumn } from "./contract.ts";
import { newColumn } from "./definitions.ts";
import { checkNotFormer, columnById } from "./schema.ts";
import { type Segment, Segments } from "./segments.ts";
import { Staged } from "./staged.ts";
import type { Store } from "./store.ts";
import type { Table } from "./table.ts";
import type { Log } from "./wal/log.ts";

/** Id of the column in the stage. That in the table is only known at the end, as others may add columns. */
const STAGED_ID = 0;
/** Segments that are looked at in one step. */
const SEEN_MAX = 256;

/** The new values of a segment. */
interface Version {
  readonly rowCount: number;
  /** Of the segment in the stage; undefined if all rows are null. */
  readonly uid: number | undefined;
}

export class StagedTypeChange extends Staged {
  private readonly stage = this.newStage();
  /** By the uid of the segment in the table. */
  private readonly versions = new Map<number, Version>();
  override readonly mark = "type";
  /** As it was at the beginning: it may get another name. */
  private readonly before: TableColumn;
  /** Id of the new column in the table, once there is one. */
  private newId: number | undefined;

  constructor(store: Store, table: Table, private readonly columnId: number, private readonly column: NewColumn) {
    super(store, table);
    this.before = this.present();
    this.stage.schema = {
      ...table.schema,
      columns: [newColumn(column, STAGED_ID)],
      timestampId: -1,
      dedupKeys: [],
    };
    this.stage.nextColumnId = STAGED_ID + 1;
    this.stage.dictionaries.clear();
  }

  protected override addBatch(): void {
    assert(false, "a type change gets no rows");
  }

  protected override *preparation(): Iterable<void> {
    for (let before = Infinity;;) {
      const count = yield* this.pass();
      if (count === 0 || count >= before) return;
      before = count;
    }
  }

  protected override finish(): void {
    for (const _ of this.pass()) this.hold();
  }

  protected override move(): number {
    const { table, columnId, column } = this, before = this.present();
    const id = this.newId = table.nextColumnId++;
    const chunks = new Map<number, Chunk | undefined>();
    for (const { uid, chunks: [chunk] } of this.stage.segments) chunks.set(uid, chunk);
    const changed = (segment: Segment): Segment => {
      const version = this.versions.get(segment.uid);
      assert(version?.rowCount === segment.rowCount, "each segment has been converted");
      if (segment.chunks[columnId] === undefined) return segment;
      const all = segment.chunks.slice();
      all[columnId] = undefined;
      all[id] = chunks.get(version.uid!);
      return { ...segment, chunks: all, words: undefined };
    };
    table.segments = table.segments.map(changed);
    table.detached = new Map([...table.detached].map(([start, segments]) => [start, segments.map(changed)]));
    const { schema } = table;
    const former = [...before.former ?? [], { id: columnId, type: before.type }];
    const after: TableColumn = { ...newColumn({ ...column, name: before.name }, id), former };
    table.schema = {
      ...schema,
      columns: schema.columns.map((known) => known === before ? after : known),
      dedupKeys: schema.dedupKeys.map((key) => key === columnId ? id : key),
      schemaVersion: schema.schemaVersion + 1,
    };
    const dictionary = this.stage.dictionaries.get(STAGED_ID);
    if (dictionary !== undefined) table.dictionaries.set(id, dictionary);
    table.changed = true;
    return 0;
  }

  override commit(log: Log, lsn: number): number {
    try {
      return super.commit(log, lsn);
    } catch (error) {
      if (this.newId !== undefined) {
        this.table.dictionaries.delete(this.newId);
        this.table.nextColumnId = this.newId;
      }
      throw error;
    }
  }

  override discard(): void {
    const dictionary = this.stage.dictionaries.get(STAGED_ID);
    const isOfTable = this.newId !== undefined && this.table.dictionaries.get(this.newId) === dictionary;
    this.stage.dictionaries.clear();
    if (!isOfTable) dictionary?.retire(this.store.publisher.version);
    super.discard();
  }

  protected override hold(): void {
    // No reader has the dictionary yet.
    for (const { outgrown } of this.stage.dictionaries.values()) {
      for (const block of outgrown.splice(0)) this.store.memory.discard(block);
    }
    super.hold();
  }

  /** The column, as it is now. @throws {SqlError} if it was dropped, or has another type by now. */
  private present(): TableColumn {
    const { table: { schema }, columnId } = this;
    checkNotFormer(schema, [columnId]);
    const column = columnById(schema, columnId);
    if (column !== undefined) return column;
    throw new SqlError("Cannot change the type of the column: it was dropped", 0, SQLSTATE.undefinedColumn);
  }

  /** Converts the segments that have not been converted as they are now. Returns how many these were. */
  private *pass(): Generator<void, number> {
    this.present();
    let count = 0, seen = 0;
    const sequences: (() => Segments)[] = [() => this.table.segments];
    for (const start of this.table.detached.keys()) {
      sequences.push(() => this.table.detached.get(start) ?? Segments.EMPTY);
    }
    for (const sequence of sequences) {
      // Between steps others may change the table. What is left out by that is found by the next pass.
      for (let k = 0; k < sequence().length; k++) {
        const segment = sequence().at(k)!;
        if (this.versions.get(segment.uid)?.rowCount !== segment.rowCount) {
          this.convert(segment);
          count++;
          yield;
        } else if (++seen % SEEN_MAX === 0) yield;
      }
    }
    return count;
  }

  private convert(segment: Segment): void {
    const { stage, table, versions } = this, { uid, rowCount } = segment;
    const known = versions.get(uid)?.uid;
    if (known !== undefined) stage.omit([known]);
    versions.delete(uid);
    const values = table.maker.convertedRows(segment, this.before, this.column.type);
    if (values === undefined) return void versions.set(uid, { rowCount, uid: undefined });
    const staged = stage.maker.segmentOfColumn(STAGED_ID, values, rowCount);
    stage.segments = stage.segments.splice(stage.segments.length, 0, [staged]);
    stage.disk.flush(true, Infinity, false);
    versions.set(uid, { rowCount, uid: staged.uid });
  }
}
