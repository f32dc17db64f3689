/**
 * Readers-writer locks for tables, on the main thread, first come, first served. Adding rows takes a shared lock.
 * UPDATE and DELETE take an exclusive one, because they compute row ids of a snapshot first.
 */
interface TableLock {
  /** Settles when all previous exclusive holders have released the lock; undefined if there is none. */
  exclusive: Promise<void> | undefined;
  /** Shared holders since then. */
  shared: Set<Promise<void>>;
}

export class TableLocks {
  private readonly locks = new Map<number, TableLock>();

  /** Runs `work` concurrently with other shared holders of the tables. */
  async shared<T>(tableIds: number[], work: () => Promise<T>): Promise<T> {
    const locks = tableIds.map((id) => this.of(id));
    const waits = locks.map((lock) => lock.exclusive).filter((wait) => wait !== undefined);
    const result = waits.length > 0 ? Promise.all(waits).then(work) : work();
    const settled = result.then(() => {}, () => {});
    locks.forEach((lock) => lock.shared.add(settled));
    try {
      return await result;
    } finally {
      tableIds.forEach((id, i) => {
        locks[i]!.shared.delete(settled);
        this.forget(id, locks[i]!);
      });
    }
  }

  /** Runs `work` exclusively. */
  async exclusive<T>(tableId: number, work: () => Promise<T>): Promise<T> {
    const lock = this.of(tableId);
    const result = Promise.all([lock.exclusive, ...lock.shared]).then(work);
    const settled = result.then(() => {}, () => {});
    lock.exclusive = settled;
    lock.shared = new Set();
    try {
      return await result;
    } finally {
      if (lock.exclusive === settled) lock.exclusive = undefined;
      this.forget(tableId, lock);
    }
  }

  private of(tableId: number): TableLock {
    let lock = this.locks.get(tableId);
    if (!lock) this.locks.set(tableId, lock = { exclusive: undefined, shared: new Set() });
    return lock;
  }

  private forget(tableId: number, lock: TableLock): void {
    if (!lock.exclusive && lock.shared.size === 0 && this.locks.get(tableId) === lock) this.locks.delete(tableId);
  }
}
