/** Rows that are known at planning time. */
import type { ValuesNode } from "../../sql/plan.ts";
import type { Dictionary } from "../../storage/contract.ts";
import { layoutOf } from "../../types/mod.ts";
import { OutputColumns, setValue, TextArena, Workspace } from "../columns.ts";
import { type Batch, MORSEL_ROWS, type Operator, type QueryContext } from "../contract.ts";

export function createValues(plan: ValuesNode, context: QueryContext): Operator {
  return new Values(plan, context);
}

class Values implements Operator {
  readonly columns;
  private readonly space: Workspace;
  private readonly arena: TextArena;
  private readonly dictionaries: (ValuesDictionary | undefined)[];
  private output?: OutputColumns;
  private position = 0;

  constructor(private readonly plan: ValuesNode, private readonly context: QueryContext) {
    this.columns = plan.columns;
    this.space = Workspace.of(context, "values");
    this.arena = new TextArena(this.space);
    this.dictionaries = plan.columns.map((column, c) =>
      layoutOf(column.type) === "symbol" ? makeDictionary(plan, c, this.space) : undefined
    );
  }

  next(): Batch | undefined {
    const { rows, columns } = this.plan, { heap } = this.context;
    const rowCount = Math.min(MORSEL_ROWS, rows.length - this.position);
    if (rowCount <= 0) return undefined;
    this.context.poll();
    this.output ??= new OutputColumns(columns.map((column) => column.type), this.space, rowCount);
    this.arena.release();
    for (let c = 0; c < columns.length; c++) {
      const { type, address } = this.output.vectors[c], dictionary = this.dictionaries[c];
      if (dictionary !== undefined) this.output.vectors[c].dictionary = dictionary.dictionary;
      for (let row = 0; row < rowCount; row++) {
        const value = rows[this.position + row][c];
        if (dictionary !== undefined) {
          heap.i32[(address >>> 2) + row] = value === null ? -1 : dictionary.codes.get(String(value))!;
        } else setValue(heap, type, address, row, value, this.arena);
      }
    }
    this.position += rowCount;
    return { rowCount, columns: this.output.vectors };
  }

  rewind(): boolean {
    this.position = 0;
    return true;
  }

  rebind(): boolean {
    return true;
  }

  close(): void {
    this.space.release();
  }
}

interface ValuesDictionary {
  dictionary: Dictionary;
  codes: Map<string, number>;
}

/** The dictionary of a SYMBOL column of values. It is identified by its address: no table has id -1. */
function makeDictionary(plan: ValuesNode, c: number, space: Workspace): ValuesDictionary {
  const codes = new Map<string, number>();
  for (const row of plan.rows) {
    const value = row[c];
    if (value !== null && !codes.has(String(value))) codes.set(String(value), codes.size);
  }
  const arena = new TextArena(space), entries = space.allocate(codes.size * 8);
  for (const [text, code] of codes) setValue(space.heap, "STRING", entries, code, text, arena);
  return { dictionary: { tableId: -1, columnId: -1, entries, count: codes.size }, codes };
}
