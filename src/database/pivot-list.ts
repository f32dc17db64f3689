/** The list of a PIVOT from a sub-query. */
import type { Session } from "../api.ts";
import { movedError, SqlError, SQLSTATE } from "../errors.ts";
import { PIVOT_COLUMNS_MAX, quotedText } from "../sql/mod.ts";
import { jsonRows } from "./own-statements.ts";
import type { WaitOptions } from "./planner.ts";

/** Types whose literals have no quotes. */
const PLAIN: ReadonlySet<string> = new Set(["BOOLEAN", "BYTE", "SHORT", "INT", "LONG"]);

const SELECT = "select * from (";

interface ListQuery {
  /** DECLARE and WITH of the queries around it, the outermost first. */
  before: readonly string[];
  text: string;
  /** Its position in the statement. */
  at: number;
}

/** Runs the sub-query, and returns its different values as literals. */
export async function pivotList(
  session: Pick<Session, "prepare">,
  { before, text, at }: ListQuery,
  options: WaitOptions,
): Promise<string> {
  const start = SELECT + before.map((prelude) => `${prelude} ${SELECT}`).join("");
  const end = ")".repeat(before.length + 1);
  /** Errors of the sub-query at their places in the statement. */
  const placed = async <T>(work: () => T | Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      throw movedError(error, (position) => at + Math.max(0, position - start.length));
    }
  };
  const prepared = await placed(() =>
    session.prepare(`${start}${text}${end} limit ${PIVOT_COLUMNS_MAX + 1}`, [], options)
  );
  const { columns = [] } = prepared, [column] = columns;
  if (columns.length !== 1) {
    throw new SqlError(`the list of PIVOT needs one column: the sub-query has ${columns.length}`, at, SQLSTATE.syntax);
  }
  const values = new Set((await placed(() => jsonRows(prepared, [], options))).flat());
  if (values.size === 0) {
    throw new SqlError("the sub-query in the list of PIVOT gives no values", at, SQLSTATE.invalidParameter);
  }
  return [...values].map((value) => literalOf(value, column!.type)).join(", ");
}

function literalOf(value: unknown, type: string): string {
  const text = String(value);
  if (value === null) return "NULL";
  if (type === "DOUBLE" || type === "FLOAT") return /^-?\d+$/.test(text) ? `${text}.0` : text;
  return PLAIN.has(type) ? text : quotedText(text);
}
