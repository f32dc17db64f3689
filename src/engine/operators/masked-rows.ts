/**
 * Groups the rows of segments that pass conditions on single columns (`marked-rows.ts`). Few rows are copied and become groups as they are. Of more,
 * the kernel reads the marks.
 */
import type { Expr, ScanNode } from "../../sql/plan.ts";
import { columnsOf } from "../compiler/expression.ts";
import { input } from "../compiler/ir.ts";
import type { QueryContext } from "../contract.ts";
import type { GroupSpec } from "../physical/plan.ts";
import type { FusedShape, Grouper, GroupTable } from "./group-table.ts";
import { MarkedRows } from "./marked-rows.ts";
import type { Morsel } from "./morsel.ts";

const OPERATOR = "GROUP BY";
/** A kernel without keys tests conditions for several rows at once, and is faster if more of the rows pass than this share. */
const SINGLE_SHARE_MAX = 5 / 8;
/** The same if all columns are FLOAT, of which it tests four at once. */
const SINGLE_FLOATS_SHARE_MAX = 1 / 4;

/** The shape for rows that pass: all rows, and those of a mask, which is the column behind those of the scan. */
export function markedShapes(shape: FusedShape, { columns }: ScanNode): { listed: FusedShape; masked: FusedShape } {
  const inputs = [...shape.inputs], mask = inputs.push({ kind: "mask", column: columns.length }) - 1;
  return { listed: { ...shape, predicate: undefined }, masked: { ...shape, inputs, predicate: input(mask, "i32") } };
}

/** Segments of which more rows pass are grouped by their values. `needed`: the columns that are read of rows that pass. */
export function markedShareMax(
  { kind }: FusedShape,
  predicates: readonly Expr[],
  needed: ReadonlySet<number>,
  { columns }: ScanNode,
): number {
  if (kind !== "single") return 1;
  const read = new Set(needed);
  for (const predicate of predicates) columnsOf(predicate, read);
  return [...read].every((column) => columns[column]!.type === "FLOAT") ? SINGLE_FLOATS_SHARE_MAX : SINGLE_SHARE_MAX;
}

export class MaskedRows {
  private listed?: Grouper;
  private masked?: Grouper;

  /** `grouper`: has its kernels. Undefined if a condition is of another kind. */
  static of(spec: GroupSpec, grouper: Grouper, node: ScanNode, context: QueryContext): MaskedRows | undefined {
    const { segments, predicates, keys, calls } = spec, shape = grouper.fusedShape;
    if (shape === undefined || (segments !== "masks" && segments !== "codes")) return undefined;
    const needed = new Set<number>();
    for (const expr of [...keys, ...calls.flatMap(({ args }) => args)]) columnsOf(expr, needed);
    const options = { operator: OPERATOR, shareMax: markedShareMax(shape, predicates, needed, node) };
    const marked = MarkedRows.of(predicates, needed, node, context, options);
    return marked && new MaskedRows(marked, markedShapes(shape, node), grouper, context);
  }

  private constructor(
    private readonly marked: MarkedRows,
    private readonly shapes: { listed: FusedShape; masked: FusedShape },
    private readonly grouper: Grouper,
    private readonly context: QueryContext,
  ) {}

  restart(): void {
    this.marked.restart();
  }

  /** Adds rows of a segment that pass to the table. False if all of them have to be read. */
  consume(table: GroupTable, morsel: Morsel): boolean {
    const { shapes, grouper, context } = this;
    return this.marked.read(morsel, {
      listed: (columns, count) => {
        this.listed ??= grouper.withShape(shapes.listed, context);
        this.listed.consume(table, columns, 0, count, 0n);
      },
      masked: (columns, from, to, rowBase) => {
        this.masked ??= grouper.withShape(shapes.masked, context);
        this.masked.consume(table, columns, from, to, rowBase);
      },
    });
  }

  close(): void {
    this.marked.close();
    this.listed?.close();
    this.masked?.close();
  }
}
