/**
 * What readers of the log still need. A hold names the first block that its reader has not read; the files from there on are kept
 * although the tables on disk have their blocks. Holds end with the process.
 */
export class LogHolds {
  private readonly byName = new Map<string, number>();

  /** The first block that a reader needs. */
  get oldest(): number | undefined {
    return this.byName.size === 0 ? undefined : Math.min(...this.byName.values());
  }

  /** Sets or moves a hold. */
  set(name: string, lsn: number): void {
    this.byName.set(name, lsn);
  }

  release(name: string): void {
    this.byName.delete(name);
  }

  /** Ends the holds of the readers that are the furthest behind, and returns their names. */
  endOldest(): string[] {
    const { oldest } = this;
    const names = [...this.byName].filter(([, lsn]) => lsn === oldest).map(([name]) => name);
    for (const name of names) this.byName.delete(name);
    return names;
  }
}
