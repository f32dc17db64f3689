/** Expressions over one symbol column, computed once for each entry of its dictionary, and a compiler that looks them up. */
import type { Expr } from "../../sql/plan.ts";
import type { Dictionary } from "../../storage/contract.ts";
import { typeOf } from "../../types/mod.ts";
import { TextArena, type Workspace } from "../columns.ts";
import { ExpressionCompiler, isText, mapColumns } from "../compiler/expression.ts";
import { MORSEL_ROWS, type QueryContext } from "../contract.ts";
import type { CompiledExpressions, CompileOptions } from "./options.ts";
import { isPerEntry } from "./rules.ts";

/** `compileExpressions` of ../expressions.ts, which is passed down because tables are made by it too. */
export type Compile = (
  exprs: readonly Expr[],
  predicate: undefined,
  inputTypes: readonly string[],
  context: QueryContext,
  options?: CompileOptions,
) => CompiledExpressions;

export function compilerFor(
  types: readonly string[],
  dictionaries: readonly (Dictionary | undefined)[],
  context: QueryContext,
  space: Workspace,
  options: CompileOptions,
  compile: Compile,
): ExpressionCompiler {
  const perEntry = (expr: Expr, column: number, dictionary: Dictionary) =>
    isPerEntry(expr, types, dictionaries, context, options)
      ? entryTable(expr, types[column], dictionary, context, space, options, compile)
      : undefined;
  return new ExpressionCompiler(types, dictionaries, context, space, perEntry, options.rowIdColumn);
}

/** Values of an expression for all entries of a dictionary, that of code -1 first. */
function entryTable(
  expr: Expr,
  symbolType: string,
  dictionary: Dictionary,
  context: QueryContext,
  space: Workspace,
  options: CompileOptions,
  compile: Compile,
): number {
  const { heap } = context;
  const width = typeOf(expr.type).width, count = dictionary.count + 1;
  const table = space.allocate(count * width);
  const codes = space.allocate(Math.min(count, MORSEL_ROWS) * 4);
  const alone = mapColumns(expr, (_, type) => ({ kind: "column", index: 0, type }));
  const compiled = compile([alone], undefined, [symbolType], context, {
    rowByRow: true,
    operator: options.operator,
  });
  const arena = new TextArena(space);
  try {
    for (let from = 0; from < count; from += MORSEL_ROWS) {
      const rowCount = Math.min(MORSEL_ROWS, count - from);
      for (let k = 0; k < rowCount; k++) heap.i32[(codes >>> 2) + k] = from + k - 1;
      const out = compiled.run({ rowCount, columns: [{ type: symbolType, address: codes, dictionary }] });
      const target = table + from * width;
      heap.u8.copyWithin(target, out.columns[0].address, out.columns[0].address + rowCount * width);
      if (isText(expr.type)) arena.adopt(target, rowCount);
    }
  } finally {
    compiled.close();
  }
  return table;
}
