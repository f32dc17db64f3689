/**
 * LATEST ON beside joins. It is about the first table: the latest rows of that are joined. Conditions about its columns alone are tested
 * before, in WHERE and in ON of inner joins, and the others after the joins.
 */
import { SqlError, SQLSTATE } from "../../errors.ts";
import type { Expression, Join, LatestOn, Select, Source } from "../ast.ts";
import { firstSource } from "../first-source.ts";
import type { Expr } from "../plan.ts";
import { ambiguousColumn, type Names, UnknownColumn } from "./context.ts";
import { FilteredRows } from "./filtered-rows.ts";
import { andParts } from "./join-sides.ts";
import { allOf, someColumn } from "./later-tables.ts";
import { latestPlan } from "./latest.ts";
import { and, columnOf, columnsRead, filter, project } from "./plans.ts";
import type { Queries } from "./query.ts";
import { candidates, type Relation, type ScopeColumn } from "./scope.ts";
import { bindSource } from "./sources.ts";

export interface LatestFirst {
  /** The select without its LATEST ON and the conditions that were tested before it. */
  select: Select;
  /** The latest rows of the first table. */
  first: Relation;
  /** The conditions that were tested. */
  tested: Expression[];
}

/** Undefined if the select has no LATEST ON beside joins. */
export function withLatestFirst(queries: Queries, select: Select, names: Names): LatestFirst | undefined {
  const { from, latestOn } = select;
  if (from?.kind !== "join" || latestOn === undefined) return undefined;
  const types = joinTypes(from);
  // They allow no LATEST ON.
  if (types.has("window") || types.has("horizon")) return undefined;
  const source = firstSource(from);
  const relation = bindSource(queries, source, names);
  if (!relation.isTable) {
    throw new SqlError(
      "LATEST ON beside joins is about the first source, which must be a table: put LATEST ON into its sub-query",
      latestOn.at,
      SQLSTATE.grouping,
    );
  }
  const rows = new FirstRows(queries, relation, names);
  const where = (select.where === undefined ? [] : andParts(select.where)).filter((part) => !rows.test(part));
  const joins = withoutTested(from, rows);
  const adding = ["right", "full", "splice"].find((type) => types.has(type as Join["type"]));
  if (adding !== undefined && rows.tested.length > 0) {
    throw new SqlError(
      `this condition is about the first table alone, which LATEST ON allows only without ${adding.toUpperCase()} JOIN: ` +
        "use a sub-query",
      rows.tested[0]!.at,
      SQLSTATE.grouping,
    );
  }
  const first = rows.latest(latestOn, nameOf(source));
  return { select: { ...select, from: joins, where: allOf(where), latestOn: undefined }, first, tested: rows.tested };
}

/** The conditions were bound over the first table only: here are the names of all. */
export function refuseAmbiguous(conditions: Expression[], columns: readonly ScopeColumn[]): void {
  someColumn(conditions, ({ path, at }) => {
    if (candidates(columns, path).length > 1) throw ambiguousColumn(path.map(({ text }) => text).join("."), at);
    return false;
  });
}

class FirstRows extends FilteredRows {
  readonly tested: Expression[] = [];
  private readonly predicates: Expr[] = [];

  /** Tests the condition if it is about columns of the table alone. */
  test(condition: Expression): boolean {
    const { plan } = this;
    try {
      const predicate = this.condition(condition);
      if (columnsRead(predicate).size > 0) {
        this.predicates.push(predicate);
        this.tested.push(condition);
        return true;
      }
    } catch (error) {
      if (!(error instanceof UnknownColumn)) throw error;
    }
    this.plan = plan;
    return false;
  }

  latest(latestOn: LatestOn, name: string): Relation {
    const { queries: { expressions }, relation, names } = this;
    const predicate = and(this.predicates);
    const input = predicate === undefined ? this.plan : filter(this.plan, predicate);
    try {
      const latest = latestPlan(expressions, relation, input, latestOn, names);
      // Sub-queries have added columns.
      const own = relation.plan.columns.map((_, index) => columnOf(latest, index));
      const plan = own.length === latest.columns.length
        ? latest
        : project(latest, own, relation.plan.columns.map((column) => column.name));
      return { ...relation, plan, timestamp: plan.timestamp };
    } catch (error) {
      if (!(error instanceof UnknownColumn)) throw error;
      const message = `LATEST ON beside joins is about the first table, and ${name} has no column ${error.column}: ` +
        "use a sub-query for the latest rows of another table, or of the join";
      throw new SqlError(message, error.position, error.sqlState);
    }
  }
}

/** The joins without the conditions in ON of inner joins that were tested. */
function withoutTested(source: Source, rows: FirstRows): Source {
  if (source.kind !== "join") return source;
  const left = withoutTested(source.left, rows);
  if (source.type !== "inner" || source.on === undefined || source.on.kind === "list") return { ...source, left };
  const on = andParts(source.on);
  // A column alone is a key that both sides have.
  const staying = on.filter((part) => part.kind === "column" || !rows.test(part));
  if (staying.length === on.length) return { ...source, left };
  return { ...source, left, type: staying.length > 0 ? "inner" : "cross", on: allOf(staying) };
}

function joinTypes(source: Source): Set<Join["type"]> {
  const types = new Set<Join["type"]>();
  for (let join = source; join.kind === "join"; join = join.left) types.add(join.type);
  return types;
}

function nameOf(source: Source): string {
  if (source.kind === "join") return "";
  return source.alias?.text ?? (source.kind === "table" ? source.name.text : "");
}
