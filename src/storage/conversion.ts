/**
 * Brings pages of earlier formats to the present one. A change does so with the pages that it touches; each checkpoint of a table with
 * some others. Rows and versions stay.
 */
import { CorruptFileError } from "../errors.ts";
import { isOld, Page } from "./page.ts";
import { PageList } from "./page-list.ts";
import type { Part } from "./segments.ts";
import type { Table } from "./table.ts";

/** Bytes of the words of pages that a step reads: about ten milliseconds. */
const STEP_BYTES = 512 << 10;
/** Number of steps of a checkpoint. */
const STEPS_MAX = 8;

/** Converts some pages. Between steps commits may change the table. */
export function* convertPages(table: Table): Generator<void> {
  for (let step = 0; step < STEPS_MAX && hasOld(table); step++) {
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
    if (left === STEP_BYTES) return; // What is left is damaged.
    table.disk.seal(false);
    yield;
  }
}

function hasOld({ segments, detached }: Table): boolean {
  return [segments, ...detached.values()].some(({ lists }) => lists.some(isOld));
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
