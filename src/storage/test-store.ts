/** For tests and benchmarks: a store and its readers' side in one thread. */
import { PAGE_BYTES } from "../wasm/assembler.ts";
import { CatalogueMirror } from "./catalogue.ts";
import { type Files, realFiles } from "./files.ts";
import type { SharedHeap } from "./heap.ts";
import type { WriterOptions } from "./options.ts";
import { formatPool } from "./frames.ts";
import { SharedPool } from "./pool.ts";
import { TableStore } from "./writer.ts";

export interface TestStore {
  store: TableStore;
  catalogue: CatalogueMirror;
  pool: SharedPool;
}

/** Opens a store in the heap, which loses its content. It makes no checkpoint by itself. `options` replaces defaults. */
export function openTestStore(
  heap: SharedHeap,
  files: Files,
  options: Partial<WriterOptions> & { poolBytes?: number } = {},
): TestStore {
  const { poolBytes = 1 << 20, ...rest } = options;
  heap.u8.fill(0, 0, PAGE_BYTES);
  heap.format();
  formatPool(heap, poolBytes);
  const catalogue = new CatalogueMirror(heap, files), pool = new SharedPool(heap, files);
  const store = new TableStore({
    files,
    root: "/db",
    heap,
    commitMode: "sync",
    log: () => {},
    onDamage: () => {},
    publish: (publication) => catalogue.apply(publication),
    checkpointLogBytes: 2 ** 40,
    memoryBytes: 1 << 20,
    random: () => 0.5,
    nowMicros: () => 0n,
    reserveBytes: 0,
    compactBytes: 1000,
    evict: (sizeBytes) => pool.evict(sizeBytes),
    ...rest,
  });
  return { store, catalogue, pool };
}

/** Files of the file system that are never synced, so that a benchmark does not measure the disk. */
export const UNSYNCED_FILES: Files = {
  ...realFiles,
  open(path, mode) {
    const file = realFiles.open(path, mode);
    return Object.assign(Object.create(file), { path, sync() {}, dataSync() {} });
  },
  syncDirectory() {},
};
