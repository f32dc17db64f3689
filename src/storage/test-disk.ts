/** Pages and lists of pages in data files that are in memory, for tests. */
import type { Extent } from "./extent.ts";
import type { Page } from "./page.ts";
import { PageList } from "./page-list.ts";
import { storedPage } from "./page-words.ts";
import type { Segments } from "./segments.ts";

export class Disk {
  private readonly extents: Uint8Array[] = [];
  reads = 0;

  readonly read = ({ file }: Extent) => {
    this.reads++;
    return this.extents[file].slice();
  };

  readonly write = (bytes: Uint8Array): Extent => (
    { file: this.extents.push(bytes) - 1, offset: 0, sizeBytes: bytes.length, crc: 0 }
  );

  sealed(page: Page): Page {
    if (page.extent !== undefined) return page;
    return page.sealed(this.write(storedPage(page)), this.read);
  }

  /** The list on disk, as it is after it was written or as a start finds it. */
  sealedList(list: PageList, isRead: boolean): PageList {
    const sealed = list.extent === undefined ? list.sealed(this.write) : list;
    return isRead ? sealed : PageList.stored(sealed.stored, this.read);
  }

  /** All segments on disk, of which nothing has been read. */
  stored(segments: Segments): Segments {
    return segments.mapPages((page) => [this.sealed(page)]).mapLists((list) => [this.sealedList(list, false)]);
  }
}
