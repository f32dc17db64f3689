/** Inputs of operators: expressions computed in addition to the columns, and inputs kept as a whole. */
import type { Expr } from "../../sql/plan.ts";
import { ColumnStore, type Workspace } from "../columns.ts";
import type { Batch, Operator, QueryContext, Vector } from "../contract.ts";
import { compileExpressions } from "../expressions.ts";
import { typesOf } from "../physical/reading.ts";

/** Expressions over batches of one input. Plain columns are used directly. */
export class Expressions {
  private readonly compiled?: ReturnType<typeof compileExpressions>;
  /** Location of each expression: a column of the input, or (negative) ~k for the k-th compiled one. */
  private readonly places: number[] = [];
  readonly types: string[];

  constructor(expressions: readonly Expr[], inputTypes: readonly string[], context: QueryContext) {
    const computed: Expr[] = [];
    for (const expression of expressions) {
      if (expression.kind === "column") this.places.push(expression.index);
      else this.places.push(~(computed.push(expression) - 1));
    }
    this.types = expressions.map((expression) => expression.type);
    if (computed.length > 0) this.compiled = compileExpressions(computed, undefined, [...inputTypes], context);
  }

  /** Valid as long as the batch, and until the next call. */
  run(batch: Batch): Vector[] {
    const computed = this.compiled?.run(batch).columns;
    return this.places.map((place) => place >= 0 ? batch.columns[place] : computed![~place]);
  }

  close(): void {
    this.compiled?.close();
  }
}

/** All rows of an operator with expressions: `vectors` has the input's columns, then the computed ones. */
export interface KeptRows {
  store: ColumnStore;
  rowCount: number;
  columns: Vector[];
  computed: Vector[];
}

/** Reads `input` to its end. */
export function keepAll(
  input: Operator,
  expressions: readonly Expr[],
  space: Workspace,
  context: QueryContext,
): KeptRows {
  const types = typesOf(input.columns);
  const extra = expressions.filter((expression) => expression.kind !== "column");
  const store = new ColumnStore([...types, ...extra.map((expression) => expression.type)], space);
  store.reserve(input.rowsAtMost ?? 0);
  const evaluated = new Expressions(extra, types, context);
  try {
    for (let batch = input.next(); batch !== undefined; batch = input.next()) {
      context.poll();
      store.append([...batch.columns, ...evaluated.run(batch)], batch.rowCount);
    }
  } finally {
    evaluated.close();
  }
  let next = types.length;
  return {
    store,
    rowCount: store.rowCount,
    columns: store.vectors.slice(0, types.length),
    computed: expressions.map((expression) => store.vectors[expression.kind === "column" ? expression.index : next++]),
  };
}
