/** Rows of INSERT that are constants when their parameters are known. They need no operators, which take far longer than one row. */
import type { Plan } from "../sql/plan.ts";
import { type EncodedBatch, encodeRows, type TableRows } from "../storage/mod.ts";
import type { Value } from "../types/mod.ts";

export type ConstantRow = readonly Value[];

/** False if the rows of the plan are not constants with any values of its parameters. */
export function mayHaveConstantRows(plan: Plan): boolean {
  if (plan.node === "project") return isOneEmptyRow(plan.input);
  if (plan.node === "set") return mayHaveConstantRows(plan.left) && mayHaveConstantRows(plan.right);
  return plan.node === "values";
}

/** The rows of a plan for columns of the types `targets`. Undefined if it is of another kind. */
export function constantRows(plan: Plan, targets: readonly string[]): ConstantRow[] | undefined {
  const rows: ConstantRow[] = [];
  return collect(plan, targets, rows) && rows.length > 0 ? rows : undefined;
}

function isOneEmptyRow(plan: Plan): boolean {
  return plan.node === "values" && plan.columns.length === 0 && plan.rows.length === 1;
}

function collect(plan: Plan, targets: readonly string[], rows: ConstantRow[]): boolean {
  switch (plan.node) {
    case "values":
      if (!plan.columns.every(({ type }, i) => fits(type, targets[i]!))) return false;
      for (const row of plan.rows) rows.push(row);
      return true;
    case "project": {
      const { input, expressions } = plan, values: Value[] = [];
      if (!isOneEmptyRow(input)) return false;
      for (let i = 0; i < expressions.length; i++) {
        const e = expressions[i]!;
        if (e.kind !== "constant" || !fits(e.type, targets[i]!)) return false;
        values.push(e.value);
      }
      rows.push(values);
      return true;
    }
    case "set":
      return plan.operator === "union all" && collect(plan.left, targets, rows) && collect(plan.right, targets, rows);
    default:
      return false;
  }
}

/** Symbols are texts until they are written. */
function fits(type: string, target: string): boolean {
  return type === target || type === "NULL" || (type === "SYMBOL_TEXT" && target === "SYMBOL");
}

/** Constant rows of the same columns of a table. Rows that are added one by one become a batch together. */
export class RowsToAdd {
  /** Number of the last change that added rows. */
  ordinal = 0;
  /** The time of the last row, if it is known. */
  latest: bigint | undefined;

  /** `rows`: they belong to it from now on. */
  constructor(
    readonly tableId: number,
    readonly columnIds: readonly number[],
    readonly types: readonly string[],
    readonly rows: ConstantRow[] = [],
  ) {}

  /** All rows. They are of the same place. */
  static joined(list: readonly RowsToAdd[]): RowsToAdd {
    const [{ tableId, columnIds, types }] = list as [RowsToAdd];
    return new RowsToAdd(tableId, columnIds, types, list.flatMap(({ rows }) => rows));
  }

  /** The same for rows of the same columns of a table. */
  get place(): string {
    return `${this.tableId}: ${this.columnIds.join()}`;
  }

  isOf(tableId: number, columnIds: readonly number[]): boolean {
    if (tableId !== this.tableId) return false;
    if (columnIds === this.columnIds) return true;
    return columnIds.length === this.columnIds.length && columnIds.every((id, i) => id === this.columnIds[i]);
  }

  add(rows: readonly ConstantRow[]): void {
    for (const row of rows) this.rows.push(row);
  }

  batch(): EncodedBatch {
    return encodeRows(this.rows, this.columnIds, this.types);
  }

  /** As a commit of its own. */
  change(): TableRows {
    return { tableId: this.tableId, batches: [this.batch()] };
  }
}
