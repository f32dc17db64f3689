/**
 * Brings pages of earlier formats to the present one. A change does so with the pages that it touches, each checkpoint of a table with
 * some others, and an idle server with all that are left. Rows and versions stay. The catalogue says which tables have no such pages any
 * more, so that a start does not open them for this.
 */
import { CorruptFileError, SqlError } from "../errors.ts";
import { type Idle, IdleWork } from "./idle.ts";
import { isOld, Page } from "./page.ts";
import { PageList } from "./page-list.ts";
import type { Part } from "./segments.ts";
import type { Store } from "./store.ts";
import type { Table, TableState } from "./table.ts";

/** Bytes of the words of pages that a step reads: about ten milliseconds. */
const STEP_BYTES = 512 << 10;
/** Number of steps of a checkpoint. */
const STEPS_MAX = 8;

/** The steps of a checkpoint. Between steps commits may change the table. */
export function* convertPages(table: Table): Generator<void> {
  for (let step = 0; step < STEPS_MAX && convertSome(table); step++) yield;
}

/** The manifest on disk names no page of an earlier format. */
export function isConverted({ unread, wasConverted, stored }: Table): boolean {
  if (unread !== undefined) return wasConverted;
  return stored === undefined || (!stored.isOld && !hasOld(stored));
}

/** The conversion of tables that do not change, while the server is idle. */
export class Conversion extends IdleWork {
  private known: Table[] | undefined;

  constructor(store: Store, idle: Idle) {
    super(store, idle, "older pages are converted later");
  }

  /** Something is left to do, and the server has been idle for long enough. */
  get isDue(): boolean {
    return this.isFree && this.waiting.length > 0;
  }

  /** Opens a table, if it is closed, and converts some of its pages. */
  protected override doStep(): void {
    const table = this.waiting.at(-1)!, { tables, publisher } = this.store;
    if (tables.get(table.schema.id) === table && this.isOpen(table)) {
      const before = table.data.writtenBytes;
      if (convertSome(table)) {
        this.sinceCheckpoint += table.data.writtenBytes - before;
        publisher.touch(table);
        publisher.publish();
        return this.checkpointIfMuch();
      }
      // If some are damaged, the next start tries again.
      if (!hasOld(table)) table.changed = true;
    }
    this.waiting.pop();
    if (this.waiting.length === 0) this.checkpoint();
  }

  /** Tables that the catalogue does not know as converted. New tables have no older pages. */
  private get waiting(): Table[] {
    return this.known ??= [...this.store.tables.values()].filter(({ wasConverted }) => !wasConverted).reverse();
  }

  /** False if it is damaged, or if there is not enough memory to open it. */
  private isOpen(table: Table): boolean {
    try {
      this.store.open(table);
    } catch (error) {
      if (!(error instanceof SqlError)) throw error;
    }
    return table.unread === undefined && table.damage === undefined;
  }
}

/** Converts some pages. Returns false if there was none, or only damaged ones. */
function convertSome(table: Table): boolean {
  if (!hasOld(table)) return false;
  let left = STEP_BYTES;
  const converted = (page: Page) => {
    if (left <= 0 || !isOld(page)) return page;
    return unlessDamaged(page, () => {
      const { segments, versions } = page;
      left -= page.stored.sizeBytes;
      return Page.of(segments, versions);
    });
  };
  table.disk.mapLists((list) => {
    if (left <= 0 || !isOld(list)) return list;
    return unlessDamaged(list, () => {
      const pages = list.pages.map(converted);
      return pages.some((page, k) => page !== list.pages[k]) ? PageList.of(pages) : list;
    });
  });
  if (left === STEP_BYTES) return false;
  table.disk.seal(false);
  return true;
}

function hasOld({ segments, detached }: Pick<TableState, "segments" | "detached">): boolean {
  const isOfOld = (lists: readonly PageList[]) => lists.some(isOld);
  if (isOfOld(segments.lists)) return true;
  for (const { lists } of detached.values()) if (isOfOld(lists)) return true;
  return false;
}

/** What is damaged stays as it is: a query that reads it reports the error. */
function unlessDamaged<T extends Part>(part: T, converted: () => T): T {
  try {
    return converted();
  } catch (error) {
    if (error instanceof CorruptFileError) return part;
    throw error;
  }
}
