/** Finds the times between which the rows of a table have changed, from the segments of two snapshots. */
import type { Interval } from "../sql/plan.ts";
import type { SegmentSource, TableSnapshot, TimedPage } from "./contract.ts";

/** Of a segment: rows are only appended as long as the uid is the same. */
interface Mark {
  readonly rowCount: number;
  readonly low: bigint;
  readonly high: bigint;
}

/** By uid; undefined if the segments of the page were not looked at. */
type PageMarks = { readonly low: bigint; readonly high: bigint; readonly segments?: ReadonlyMap<number, Mark> };

export class ChangedTimes {
  private pages: ReadonlyMap<string, PageMarks>;
  private lsn: bigint;

  /** Changes count from this snapshot on. */
  constructor(table: TableSnapshot) {
    this.pages = new Map(table.timedPages().map((page) => [page.key, marksOf(page)]));
    this.lsn = table.lsn;
  }

  /**
   * Intervals of the designated timestamp, in no order, that have all rows which were added, changed or removed since the last call. They may have
   * others: those of the same segments.
   */
  next(table: TableSnapshot): Interval[] {
    if (table.lsn === this.lsn) return [];
    const pages = table.timedPages(), before = this.pages, now = new Map<string, PageMarks>();
    const added: PageMarks[] = [], removed: PageMarks[] = [];
    for (const page of pages) {
      const known = before.get(page.key), marks = known ?? marksOf(page);
      if (known === undefined) added.push(marks);
      now.set(page.key, marks);
    }
    for (const [key, marks] of before) if (!now.has(key)) removed.push(marks);
    this.pages = now;
    this.lsn = table.lsn;
    return differences(removed, added);
  }
}

function marksOf({ timestampMin: low, timestampMax: high, segments }: TimedPage): PageMarks {
  const found = segments?.();
  return { low, high, segments: found && new Map(found.map((segment) => [segment.uid, markOf(segment)])) };
}

function markOf({ rowCount, timestampMin: low, timestampMax: high }: SegmentSource): Mark {
  return { rowCount, low, high };
}

function differences(removed: readonly PageMarks[], added: readonly PageMarks[]): Interval[] {
  const found: Interval[] = [], before = new Map<number, Mark>();
  for (const { low, high, segments } of removed) {
    if (segments === undefined) found.push([low, high]);
    else for (const [uid, mark] of segments) before.set(uid, mark);
  }
  for (const { low, high, segments } of added) {
    if (segments === undefined) {
      found.push([low, high]);
      continue;
    }
    for (const [uid, mark] of segments) {
      const known = before.get(uid);
      before.delete(uid);
      if (known === undefined) found.push([mark.low, mark.high]);
      else if (known.rowCount !== mark.rowCount) found.push([known.high, mark.high]);
    }
  }
  for (const { low, high } of before.values()) found.push([low, high]);
  return found;
}
