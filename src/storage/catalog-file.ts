/** The catalogue on disk, `catalog`: which tables there are, and with which block of the log a start begins. */
import type { CorruptFileError } from "../errors.ts";
import { type Files, join } from "./files.ts";
import { type CatalogRecord, decodeCatalog, encodeCatalog } from "./manifest.ts";
import { readSlots, syncSlot, writeSlot } from "./slots.ts";

export interface FoundCatalog {
  readonly path: string;
  readonly record: CatalogRecord;
}

export class CatalogFile {
  readonly base: string;
  private generation = 0;

  constructor(private readonly files: Files, private readonly root: string) {
    this.base = join(root, "catalog");
  }

  /** Finds the newest whole catalogue. `damage`: of slots that may have been newer. */
  read(): { found: FoundCatalog | undefined; damage: readonly CorruptFileError[] } {
    const { slots: [newest], damage } = readSlots(this.files, this.base);
    if (newest === undefined) return { found: undefined, damage };
    this.generation = newest.generation;
    return { found: { path: newest.path, record: decodeCatalog(newest.path, newest.payload) }, damage };
  }

  /** The process that wrote the catalogue may have died before its sync. */
  sync({ path }: FoundCatalog): void {
    syncSlot(this.files, path);
  }

  write(record: CatalogRecord): void {
    writeSlot(this.files, this.base, this.generation + 1, encodeCatalog(record));
    this.files.syncDirectory(this.root);
    this.generation++;
  }
}
