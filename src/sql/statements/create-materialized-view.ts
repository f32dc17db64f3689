/** CREATE MATERIALIZED VIEW: a table with the rows of a query, which the server brings up to date when the base table has changed. */
import { SqlError, SQLSTATE } from "../../errors.ts";
import type { Named } from "../../access/mod.ts";
import { UNIT_NANOS } from "../../types/calendar.ts";
import { sameName } from "../../types/names.ts";
import type { Name, Query, SampleBy, Source, Statement } from "../ast.ts";
import { registry } from "../functions/mod.ts";
import type { Binding } from "../binder/context.ts";
import { walk } from "../binder/plans.ts";
import type { BoundStatement, Materialized, NewTable, PartitionUnit, Plan } from "../plan.ts";
import { nodeExpressions, visitPlan } from "../planner/nodes.ts";
import { at, given, many, name, newName, optional, word } from "../tree-nodes.ts";
import { ownerOf } from "./access/owned-by.ts";
import { addIndexes, type CreateTable, partitionUnit, queryColumns } from "./create-table.ts";
import { bodyOf } from "./create-view.ts";
import { checkTableName, onlyName, refuseOwn } from "./names.ts";
import type { WrittenRefresh } from "./refresh-rule.ts";
import { done, type StatementKind } from "./statement.ts";
import { parseTtl, type WrittenTtl } from "./table-options.ts";

interface CreateMaterializedView extends Statement {
  kind: "createMaterializedView";
  name: Name;
  ifNotExists: boolean;
  base?: Name;
  refresh?: WrittenRefresh;
  query: Query;
  text: string;
  indexes: CreateTable["indexes"];
  timestamp?: Name;
  partitionBy?: { at: number; unit: string };
  ttl?: WrittenTtl;
  ownedBy?: Named;
}

interface BoundCreateMaterializedView extends BoundStatement<never> {
  kind: "createMaterializedView";
  /** Undefined if the view is there. */
  table?: NewTable;
  ownedBy?: Named;
}

const TAG = "CREATE MATERIALIZED VIEW";

export const createMaterializedView: StatementKind<CreateMaterializedView, BoundCreateMaterializedView> = {
  kind: "createMaterializedView",
  form: {
    words: ["CREATE MATERIALIZED"],
    grammar: String.raw`
  createMaterializedView = "CREATE" "MATERIALIZED" "VIEW" ifNotExists? tableName viewBase? refreshRule? materializedBody
  viewBase = "WITH" "BASE" tableName
  materializedBody = "AS" "(" query ")" materializedIndex* materializedOption*  -- nested
                   | "AS" query                              -- plain
  materializedIndex = "," indexItem
  materializedOption = "TIMESTAMP" "(" name ")"              -- timestamp
                     | "PARTITION" "BY" name                 -- partition
                     | "TTL" ttl                             -- ttl
                     | ownedBy                               -- owned`,
    actions: {
      createMaterializedView(create, _materialized, _view, ifNotExists, table, base, refresh, body) {
        return {
          kind: "createMaterializedView",
          at: at(create),
          name: newName(onlyName(table.tree())),
          ifNotExists: given(ifNotExists),
          base: optional<Name>(base),
          refresh: optional<WrittenRefresh>(refresh),
          indexes: [],
          ...body.tree() as Pick<CreateMaterializedView, "query" | "text">,
        };
      },
      viewBase: (_with, _base, table): Name => onlyName(table.tree()),
      materializedBody_nested: (_as, _open, query, _close, indexes, options) =>
        Object.assign(bodyOf(query), { indexes: many(indexes) }, ...many<object>(options)),
      materializedIndex: (_comma, index) => index.tree(),
      materializedBody_plain: (_as, query) => bodyOf(query),
      materializedOption_timestamp: (_timestamp, _open, column, _close) => ({ timestamp: name(column) }),
      materializedOption_partition: (_partition, _by, unit) => ({ partitionBy: { at: at(unit), unit: word(unit) } }),
      materializedOption_ttl: (_ttl, ttl) => ({ ttl: { at: at(ttl), text: ttl.tree() } }),
      materializedOption_owned: (owner) => ({ ownedBy: owner.tree() }),
    },
  },
  reference: {
    syntax:
      `CREATE MATERIALIZED VIEW [IF NOT EXISTS] view [WITH BASE table] [refresh] AS (query) [, INDEX (column), …] [options]`,
    summary:
      "Makes a table of the rows of a query with `SAMPLE BY`, which the server refreshes. `refresh` is `REFRESH IMMEDIATE` (after changes of the base " +
      "table; the default), `REFRESH MANUAL` (by `REFRESH MATERIALIZED VIEW`) or `REFRESH EVERY n unit [START 'time' [TIME ZONE 'zone']]`; with `DEFERRED` it " +
      "gets no rows at first. `PERIOD (LENGTH 1d [TIME ZONE 'zone'] [DELAY 2h])` after these, or instead of them, adds the rows of a period when " +
      "the period and the delay have passed; the period of `PERIOD (SAMPLE BY INTERVAL)` is that of `SAMPLE BY`. A query that reads several tables needs `WITH BASE`: only changes of the base cause a refresh. Options are `PARTITION BY unit`, " +
      "`TTL n unit` and `OWNED BY name`.",
  },
  category: "ddl",
  requires: [TAG],
  notInTransaction: TAG,

  bind(create, queries) {
    const { binding } = queries, { catalogue, views } = binding.context, { text: named, at: nameAt } = create.name;
    checkTableName(create.name);
    refuseOwn(binding, create.name, nameAt);
    binding.requires.add(TAG, create.at);
    const { ownedBy } = create, existing = catalogue.table(named);
    const isTaken = existing !== undefined || views?.view(named) !== undefined;
    if (isTaken && create.ifNotExists && existing?.schema.materialized !== undefined) {
      return { kind: "createMaterializedView", ownedBy };
    }
    if (isTaken) throw new SqlError(`${named} exists already`, nameAt, SQLSTATE.duplicateTable);
    const { columns, plan, inherited } = queryColumns(queries, { ...create, casts: [] });
    const samples = samplesOf(create.query), base = baseOf(create, plan, binding);
    const samplings = checkQuery(create, samples, plan, inherited);
    const refresh = create.refresh?.(() => binding.now(), samplings[0]!) ?? { kind: "immediate" };
    addIndexes(columns, create.indexes);
    const { timestamp } = create;
    if (timestamp !== undefined && !sameName(timestamp.text, columns[inherited]!.name)) {
      throw new SqlError(
        `the designated timestamp is ${columns[inherited]!.name}: found ${timestamp.text}`,
        timestamp.at,
        SQLSTATE.invalidParameter,
      );
    }
    const partitionBy = create.partitionBy === undefined ? usualPartitions(samplings[0]!) : partitionUnit(create);
    if (partitionBy === "NONE") {
      throw new SqlError("a materialized view needs partitions", create.partitionBy!.at, SQLSTATE.invalidParameter);
    }
    const table: NewTable = {
      name: named,
      columns,
      timestamp: inherited,
      partitionBy,
      wal: true,
      dedupKeys: [],
      ttl: create.ttl === undefined ? undefined : parseTtl(create.ttl, partitionBy),
      materialized: { base: base.name, baseId: base.id, text: create.text, samplings, refresh },
    };
    return { kind: "createMaterializedView", table, ownedBy };
  },

  async execute({ table, ownedBy }, run) {
    if (table === undefined) return done("ddl", TAG);
    const { name } = table;
    if (run.catalogue.table(name) !== undefined || run.services.views.isTaken(name)) {
      throw new SqlError(`Cannot create view ${name}: it exists already`, 0, SQLSTATE.duplicateTable);
    }
    await run.define({ kind: "createTable", table, creator: ownerOf(ownedBy, run) });
    return run.defined(TAG);
  },
};

/** All objects of a tree. */
function visitTree(tree: unknown, visit: (part: Record<string, unknown>) => void): void {
  if (typeof tree !== "object" || tree === null) return;
  if (!Array.isArray(tree)) visit(tree as Record<string, unknown>);
  Object.values(tree).forEach((part) => visitTree(part, visit));
}

/** Outer ones first. */
function samplesOf(query: Query): SampleBy[] {
  const found: SampleBy[] = [];
  visitTree(query, ({ sampleBy }) => sampleBy !== undefined && found.push(sampleBy as SampleBy));
  return found;
}

/** The table whose changes the view follows. */
function baseOf({ query, base }: CreateMaterializedView, plan: Plan, binding: Binding) {
  const read = new Set<string>(), { catalogue } = binding.context;
  visitPlan(plan, (node) => node.node === "scan" && read.add(node.tableName));
  const tables = [...read].map((name) => catalogue.table(name)!.schema);
  if (base === undefined && tables.length !== 1) {
    const found = tables.length === 0 ? "none" : tables.map((table) => table.name).join(", ");
    throw new SqlError(`WITH BASE has to name the base table: the query reads ${found}`, query.at, SQLSTATE.syntax);
  }
  const chosen = base === undefined ? tables[0]! : tables.find((table) => sameName(table.name, base.text));
  if (chosen === undefined) {
    throw new SqlError(`the query does not read ${base!.text}`, base!.at, SQLSTATE.invalidParameter);
  }
  if (!chosen.wal || chosen.timestampId < 0) {
    throw new SqlError(
      `${chosen.name} cannot be the base of a view: it has no WAL`,
      base?.at ?? placeOf(query, chosen.name),
      SQLSTATE.wrongObjectType,
    );
  }
  return chosen;
}

/** Where the query has this table. */
function placeOf(query: Query, table: string): number {
  let found = query.at;
  visitTree(query, (part) => {
    const source = part as Partial<Source>;
    if (source.kind === "table" && sameName(source.name!.text, table)) found = source.at!;
  });
  return found;
}

/** Nodes whose rows depend on those of other times. */
const OVER_TIME: Readonly<Record<string, string>> = {
  aggregate: "GROUP BY",
  windowJoin: "WINDOW JOIN",
  horizonJoin: "HORIZON JOIN",
  latest: "LATEST ON",
  limit: "LIMIT",
  recursion: "a recursion",
};

/**
 * Returns the samplings of the query.
 * @throws {SqlError} if rows of a time do not depend on those of the base of this time alone, and on nothing else.
 */
function checkQuery(
  { query }: CreateMaterializedView,
  samples: readonly SampleBy[],
  plan: Plan,
  timestamp: number,
): Materialized["samplings"] {
  const refused = (what: string, at: number) =>
    new SqlError(`a materialized view cannot have ${what}`, at, SQLSTATE.featureNotSupported);
  if (samples.length === 0) throw new SqlError("a materialized view needs SAMPLE BY", query.at, SQLSTATE.syntax);
  for (const { fill, from, to, align } of samples) {
    if (fill !== undefined) throw refused("FILL", fill.items[0]?.at ?? fill.at);
    if (from !== undefined || to !== undefined) throw refused("FROM or TO", (from ?? to!).at);
    if (align?.to === "first observation") throw refused("ALIGN TO FIRST OBSERVATION", align.at);
  }
  if (timestamp < 0) {
    throw new SqlError("the columns must include the designated timestamp", query.at, SQLSTATE.invalidParameter);
  }
  const samplings: Materialized["samplings"][number][] = [];
  visitPlan(plan, (node) => {
    if (node.node === "window") throw refused("window functions", node.calls[0]!.at);
    if (Object.hasOwn(OVER_TIME, node.node)) throw refused(OVER_TIME[node.node]!, query.at);
    if (node.node === "sample") {
      const join = joinWithoutTimes(node.input);
      if (join !== undefined) throw refused(`SAMPLE BY after ${join} JOIN, which adds rows without a time`, query.at);
      const { count, unit, timeZone, offset } = node.sampling;
      samplings.push({ count, unit, timeZone, offset: String(offset) });
    }
    if (node.node === "metadata") throw refused(`${node.source}(), whose rows change by themselves`, node.at);
    for (const expr of nodeExpressions(node)) {
      walk(expr, (part) => {
        if (part.kind !== "call") return;
        const { volatility, name } = registry.resolve(part.function).entry;
        if (volatility !== "immutable") throw refused(`${name}(), which gives other values each time`, part.at);
      });
    }
  });
  return samplings;
}

/** The join that adds rows in which the time of the first source is null. */
function joinWithoutTimes(input: Plan): string | undefined {
  let plan = input;
  while (plan.node === "filter" || (plan.node === "join" && plan.type !== "right" && plan.type !== "full")) {
    plan = plan.node === "filter" ? plan.input : plan.left;
  }
  if (plan.node === "join") return plan.type.toUpperCase();
  return plan.node === "timeJoin" && plan.type === "splice" ? "SPLICE" : undefined;
}

/** Without PARTITION BY: about a thousand buckets. */
function usualPartitions({ count, unit }: Materialized["samplings"][number]): PartitionUnit {
  const nanos = UNIT_NANOS[unit];
  if (nanos === undefined) return "YEAR"; // of months and years
  const bucket = BigInt(count) * nanos;
  return bucket > UNIT_NANOS.h! ? "YEAR" : bucket > UNIT_NANOS.m! ? "MONTH" : "DAY";
}
