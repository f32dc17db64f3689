/** ALTER TABLE … DROP, DETACH and ATTACH PARTITION. */
import type { PostedPlan } from "../../engine/contract.ts";
import { SqlError, SQLSTATE } from "../../errors.ts";
import type { PartitionInfo, PartitionMove, TableSnapshot } from "../../storage/contract.ts";
import type { Expression, Name, Statement } from "../ast.ts";
import { NO_NAMES } from "../binder/context.ts";
import { columnOf, filter, project } from "../binder/plans.ts";
import type { Queries } from "../binder/query.ts";
import type { BoundStatement, MetadataNode, PartitionUnit, Plan } from "../plan.ts";
import { at, list, token, word } from "../tree-nodes.ts";
import { onlyName } from "./names.ts";
import { done, type StatementKind } from "./statement.ts";

type Action = "drop" | "detach" | "attach";

export interface Listed {
  at: number;
  text: string;
}

interface AlterPartitions extends Statement {
  kind: "alterPartitions";
  table: Name;
  action: Action;
  /** FORCE DROP: partitions that do not exist are no error. */
  isForced?: boolean;
  /** Offset of the word PARTITION. */
  partitionAt: number;
  which: Listed[] | Expression;
}

export interface BoundAlterPartitions<P = PostedPlan> extends BoundStatement<P> {
  kind: "alterPartitions";
  tableId: number;
  columnIds: [];
  action: Action;
  isForced?: boolean;
  /** The partitions of LIST. */
  listed: Listed[];
  /** For WHERE: returns the starts of the partitions. */
  plan?: P;
  /** Offset of the condition. */
  at: number;
}

export const alterPartitions: StatementKind<AlterPartitions, BoundAlterPartitions> = {
  kind: "alterPartitions",
  form: {
    words: ["ALTER"],
    grammar: String.raw`
  alterPartitions = "ALTER" "TABLE" tableName partitionChange
  partitionChange = ("DROP" | "DETACH") "PARTITION" partitions  -- drop
                  | "FORCE" "DROP" "PARTITION" partitionList    -- force
                  | "ATTACH" "PARTITION" partitionList          -- attach
  partitions = partitionList | "WHERE" expr                     -- where
  partitionList = "LIST" partitionText ("," partitionText)*
  partitionText = "<string>"`,
    actions: {
      alterPartitions(alter, _table, table, change): AlterPartitions {
        return { kind: "alterPartitions", at: at(alter), table: onlyName(table.tree()), ...change.tree() };
      },
      partitionChange_drop(action, partition, which) {
        return { action: word(action), partitionAt: at(partition), which: which.tree() };
      },
      partitionChange_force(_force, drop, partition, which) {
        return { action: word(drop), isForced: true, partitionAt: at(partition), which: which.tree() };
      },
      partitionChange_attach(action, partition, which) {
        return { action: word(action), partitionAt: at(partition), which: which.tree() };
      },
      partitions(which) {
        return which.tree();
      },
      partitions_where(_where, condition) {
        return condition.tree();
      },
      partitionList(_list, first, _commas, rest) {
        return list<Listed>(first, rest);
      },
      partitionText(text): Listed {
        return { at: at(text), text: token(text).text };
      },
    },
  },
  reference: {
    syntax: `ALTER TABLE table DROP PARTITION LIST 'name', … | WHERE condition
ALTER TABLE table FORCE DROP PARTITION LIST 'name', …
ALTER TABLE table DETACH PARTITION LIST 'name', … | WHERE condition
ALTER TABLE table ATTACH PARTITION LIST 'name', …`,
    summary:
      "DROP removes whole partitions. DETACH takes them out of the table but keeps them, and ATTACH puts them back. The condition is " +
      "about the designated timestamp and is evaluated for the start of each partition. Weeks can be named by one of " +
      "their days. The last partition cannot be detached. `DROP PARTITION LIST 'name.detached'` removes a detached " +
      "partition. In tables with WAL, or with FORCE, partitions that do not exist are dropped without an error.",
  },
  category: "ddl",
  requires: ["DROP PARTITION", "DETACH PARTITION", "ATTACH PARTITION"],
  notInTransaction: "ALTER TABLE … PARTITION",

  bind({ table: name, action, isForced, partitionAt, which }, queries) {
    const { binding } = queries;
    const table = binding.table(name);
    binding.requires.add(`${action.toUpperCase() as Uppercase<Action>} PARTITION`, name.at, table.schema);
    if (table.schema.partitionBy === "NONE") {
      throw new SqlError("the table is not partitioned", partitionAt, SQLSTATE.invalidParameter);
    }
    const isList = Array.isArray(which);
    if (isList) { for (const listed of which) checkPartitionName(listed, table.schema.partitionBy, action); }
    return {
      kind: "alterPartitions",
      tableId: table.schema.id,
      columnIds: [],
      action,
      isForced,
      listed: isList ? which : [],
      plan: isList ? undefined : partitionsWhere(table, which, queries),
      at: isList ? name.at : firstAt(which),
    };
  },

  source: {
    rows: ({ catalogue }, { args: [name] }) =>
      catalogue.table(`${name}`)?.partitions().map(({ start }) => [start, start]) ?? [],
  },

  async execute(bound, run) {
    const { tableId, action, isForced, listed, plan, at } = bound;
    const table = run.catalogue.tableById(tableId);
    if (table === undefined) throw new SqlError("the table was dropped", at, SQLSTATE.undefinedTable);
    const places = placesIn(table);
    const mayMiss = action === "drop" && (table.schema.wal || isForced === true);
    const moves = listed.flatMap((item) => moveOf(places, action, item, mayMiss) ?? []);
    if (moves.length > 0) await run.define({ kind: "partitions", tableId, moves: distinct(moves) });
    if (plan !== undefined) {
      const movesOf = (starts: readonly bigint[]) => starts.map((start) => move(places, action, { start, at }));
      const count = await run.movePartitions({ ...bound, plan }, movesOf);
      if (count === 0 && !mayMiss) {
        throw new SqlError("no partition satisfies the condition", at, SQLSTATE.invalidParameter);
      }
    }
    return done("ddl", "ALTER TABLE");
  },
};

/** Makes a plan that returns the starts of the partitions for which the condition holds. */
export function partitionsWhere({ schema }: TableSnapshot, condition: Expression, queries: Queries): Plan {
  const { name, type } = schema.columns.find(({ id }) => id === schema.timestampId)!;
  const starts: MetadataNode = {
    node: "metadata",
    source: "alterPartitions",
    args: [schema.name],
    at: condition.at,
    columns: [{ name, type }, { name: "start", type: "LONG" }],
    timestamp: -1,
    order: "none",
  };
  const column = { name, qualifier: schema.name.toLowerCase(), type, index: 0 };
  const predicate = queries.expressions.condition(condition, { columns: [column], names: NO_NAMES, isFilter: true });
  return project(filter(starts, predicate), [columnOf(starts, 1)], ["start"]);
}

/** Returns the offset of the expression's first token. */
function firstAt(e: Expression): number {
  let first = e.at;
  for (const part of Object.values(e)) {
    for (const inner of Array.isArray(part) ? part : [part]) {
      if (inner !== null && typeof inner === "object" && "at" in inner) first = Math.min(first, firstAt(inner));
    }
  }
  return first;
}

const DETACHED = ".detached";
const DAY_MICROS = 86_400_000_000n;
/** A longer instant names the partition that contains it. */
const TAIL = String.raw`([T ][\d:.]*Z?)?$`;
const NAMES: Record<Exclude<PartitionUnit, "NONE">, { format: string; pattern: RegExp; length: number }> = {
  HOUR: { format: "yyyy-MM-ddTHH", pattern: /^\d{4}-\d{2}-\d{2}[T ]\d{2}(:[\d:.]*Z?)?$/, length: 13 },
  DAY: { format: "yyyy-MM-dd", pattern: new RegExp(String.raw`^\d{4}-\d{2}-\d{2}${TAIL}`), length: 10 },
  WEEK: { format: "YYYY-Www", pattern: new RegExp(String.raw`^\d{4}-(W\d{2}$|\d{2}-\d{2}${TAIL})`), length: 10 },
  MONTH: { format: "yyyy-MM", pattern: new RegExp(String.raw`^\d{4}-\d{2}(-\d{2}${TAIL})?$`), length: 7 },
  YEAR: { format: "yyyy", pattern: new RegExp(String.raw`^\d{4}(-\d{2}(-\d{2}${TAIL})?)?$`), length: 4 },
};

export function checkPartitionName({ at, text }: Listed, unit: PartitionUnit, action?: Action): void {
  const { format, pattern } = NAMES[unit as keyof typeof NAMES];
  const name = action === "drop" && text.endsWith(DETACHED) ? text.slice(0, -DETACHED.length) : text;
  if (!pattern.test(name) || !isInCalendar(name)) {
    throw new SqlError(`Expected the name of a partition, ${format}: found '${text}'`, at, SQLSTATE.invalidParameter);
  }
}

const FIRST_HOUR = "0000-01-01T00:00:00Z";

/** Whether month, week, day and hour of the name exist: 2024-02-30 does not. */
function isInCalendar(name: string): boolean {
  if (name[5] === "W") return Number(name.slice(6)) >= 1 && Number(name.slice(6)) <= 53;
  const hour = name.replace(" ", "T").slice(0, NAMES.HOUR.length);
  const instant = Date.parse(`${hour}${FIRST_HOUR.slice(hour.length)}`);
  return !Number.isNaN(instant) && new Date(instant).toISOString().startsWith(hour.replace("Z", ""));
}

/** The partitions of a table, listed once: there may be many. */
interface Places {
  schema: TableSnapshot["schema"];
  attached: readonly PartitionInfo[];
  detached: readonly PartitionInfo[];
  attachedStarts: ReadonlySet<bigint>;
  detachedStarts: ReadonlySet<bigint>;
}

function placesIn(table: TableSnapshot): Places {
  const attached = table.partitions(), detached = table.detachedPartitions();
  const starts = (partitions: readonly PartitionInfo[]) => new Set(partitions.map(({ start }) => start));
  return {
    schema: table.schema,
    attached,
    detached,
    attachedStarts: starts(attached),
    detachedStarts: starts(detached),
  };
}

/** Returns undefined if there is nothing to do. `mayMiss`: a partition that does not exist is no error. */
function moveOf(
  places: Places,
  action: Action,
  { at, text }: Listed,
  mayMiss: boolean,
): PartitionMove | undefined {
  const { schema, attached, detached } = places;
  if (action === "drop" && text.endsWith(DETACHED)) {
    const found = find(detached, text.slice(0, -DETACHED.length), schema);
    if (found !== undefined) return { start: found.start, from: "detached", to: "nowhere" };
  }
  const found = find(action === "attach" ? detached : attached, text, schema);
  if (found !== undefined) return move(places, action, { start: found.start, at });
  if (mayMiss) return undefined;
  const message = action === "attach" ? `no partition ${text} is detached` : `there is no partition ${text}`;
  throw new SqlError(message, at, SQLSTATE.invalidParameter);
}

function find(
  partitions: readonly PartitionInfo[],
  text: string,
  { partitionBy, columns, timestampId }: TableSnapshot["schema"],
): PartitionInfo | undefined {
  if (partitionBy === "NONE") return undefined;
  if (partitionBy !== "WEEK" || text[5] === "W") {
    const name = text.slice(0, NAMES[partitionBy].length).replace(" ", "T");
    return partitions.find((partition) => partition.name === name);
  }
  const day = Date.parse(`${text.slice(0, 10)}T00:00:00Z`);
  if (Number.isNaN(day)) return undefined;
  const ticks = columns.find(({ id }) => id === timestampId)?.type === "TIMESTAMP_NS" ? 1000n : 1n;
  const instant = BigInt(day) * 1000n * ticks;
  return partitions.find(({ start }) => instant >= start && instant < start + 7n * DAY_MICROS * ticks);
}

function move(
  { attached, attachedStarts, detachedStarts }: Places,
  action: Action,
  { start, at }: { start: bigint; at: number },
): PartitionMove {
  if (action === "drop") return { start, from: "attached", to: "nowhere" };
  if (action === "attach") {
    if (attachedStarts.has(start)) {
      throw new SqlError(
        "Cannot attach the partition: the table already has rows in its time range; drop or detach these first",
        at,
        SQLSTATE.invalidParameter,
      );
    }
    return { start, from: "detached", to: "attached" };
  }
  if (attached.at(-1)?.start === start) {
    throw new SqlError(
      "the last partition cannot be detached, because new rows are added to it",
      at,
      SQLSTATE.invalidParameter,
    );
  }
  if (detachedStarts.has(start)) {
    throw new SqlError("a detached partition of this name already exists", at, SQLSTATE.invalidParameter);
  }
  return { start, from: "attached", to: "detached" };
}

/** Removes repetitions: a partition may be listed twice. */
function distinct(moves: readonly PartitionMove[]): PartitionMove[] {
  return moves.filter((a, k) => moves.findIndex((b) => b.start === a.start && b.from === a.from) === k);
}
