/** The rows of morsels that pass conditions, with the values of expressions: what a participant of a task computes. */
import type { Expr } from "../../sql/plan.ts";
import { columnsOf } from "../compiler/expression.ts";
import type { Batch, QueryContext } from "../contract.ts";
import { type CompiledExpressions, compileExpressions, type ScanBatch } from "../expressions.ts";
import { openMorsels, rowCountOf, typesOfPlan } from "./base.ts";
import type { BasePlan, MorselReader } from "./base-plan.ts";
import type { Morsel } from "./morsel.ts";
import { advance } from "./scan.ts";

export class ComputedMorsels {
  private readonly reader: MorselReader;
  private readonly compiled: CompiledExpressions;

  /** `selects`: the reader leaves out rows that do not pass, where it can find them by packed codes. */
  constructor(
    base: BasePlan,
    predicates: readonly Expr[],
    exprs: readonly Expr[],
    operator: string,
    context: QueryContext,
    selects: boolean,
  ) {
    const needed = new Set<number>();
    for (const expr of [...predicates, ...exprs]) columnsOf(expr, needed);
    this.reader = openMorsels(base, needed, context, selects ? predicates : []);
    this.compiled = compileExpressions(exprs, predicates, typesOfPlan(base), context, {
      operator,
      expectedRows: rowCountOf(base, context),
    });
  }

  /** A batch is valid until the next one. */
  *batches(morsel: Morsel): Generator<Batch, void, void> {
    this.reader.start(morsel);
    for (let rows = this.reader.next(); rows !== undefined; rows = this.reader.next()) {
      const columns = advance(rows.columns, rows.start);
      yield this.compiled.run({ rowCount: rows.end - rows.start, columns } as ScanBatch);
    }
  }

  close(): void {
    this.reader.close();
    this.compiled.close();
  }
}
