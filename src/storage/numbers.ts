/** Numbers that a database uses once. The catalogue has the next ones, and a start passes those that are found to be in use. */
export interface NextNumbers {
  tableId: number;
  fileId: number;
}

export class Numbers {
  private readonly nextNumbers: NextNumbers = { tableId: 1, fileId: 1 };

  get next(): Readonly<NextNumbers> {
    return this.nextNumbers;
  }

  takeTableId(): number {
    return this.nextNumbers.tableId++;
  }

  takeFileId(): number {
    return this.nextNumbers.fileId++;
  }

  /** The numbers to come are not below these. */
  pass({ tableId = 0, fileId = 0 }: Partial<NextNumbers>): void {
    const { nextNumbers } = this;
    nextNumbers.tableId = Math.max(nextNumbers.tableId, tableId);
    nextNumbers.fileId = Math.max(nextNumbers.fileId, fileId);
  }
}
