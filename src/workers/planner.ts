/**
 * Entry point of the thread that parses, binds and plans long statements, one at a time. It asks main for table
 * metadata and sleeps until main answers. It cannot be interrupted: its work is bounded, and it polls a cancel word in
 * shared memory.
 */
import { receiveMessageOnPort } from "node:worker_threads";
import { OWN_TABLES, type Planned, planOfRun, plansOf, planText } from "../database/planning.ts";
import {
  type Answers,
  CONTROL,
  type FromPlanner,
  type Order,
  type Question,
  type StatementOrder,
  type TableFacts,
  type ToPlanner,
} from "../database/planner.ts";
import { packPlan, scansOf, treeOf, unpackPlan } from "../engine/packed-plan.ts";
import { parquetSchema } from "../engine/parquet/file.ts";
import { postedError } from "../engine/posted-error.ts";
import { CANCEL, cancelError } from "../engine/slot.ts";
import { boundsOf, type Effort, explainNodes, FULL_EFFORT, substituteCalls, usesClock } from "../sql/mod.ts";
import type { Plan } from "../sql/plan.ts";
import { mapPlan, mapStatement } from "../sql/planner/nodes.ts";
import { returnGarbage } from "./memory-release.ts";
import { yieldToOthers } from "./priority.ts";
import type { Value } from "../types/mod.ts";
import type { Catalogue, TableSchema, TableSnapshot } from "../storage/contract.ts";

/** Maximum number of planned statements to cache, and of the characters of their keys. The last one is kept in any case. */
const KEPT_MAX = 4, KEPT_LENGTH_MAX = 4 << 20;
/** After a text of this length, garbage is collected: V8 would let that of the next one be added. */
const COLLECTED_LENGTH_MIN = 1 << 20;
/** Maximum sleep between two checks of the cancel word. */
const SLEEP_MS = 100;

let control: Int32Array;
let answers: Parameters<typeof receiveMessageOnPort>[0];
let importRoot: string;
let effort: Effort;
/** By everything that they depend on, in order of last use. */
const kept = new Map<string, Planned>();

const post = (message: FromPlanner, transfer: Transferable[] = []) => self.postMessage(message, transfer);

self.onmessage = ({ data }: MessageEvent<ToPlanner>) => {
  if (data.kind === "start") {
    control = new Int32Array(data.control);
    answers = data.answers as unknown as typeof answers;
    importRoot = data.importRoot;
    yieldToOthers();
    effort = { ...FULL_EFFORT, words: data.words, tokens: data.tokens, expressions: data.expressions };
    return;
  }
  try {
    const transfer: Transferable[] = [];
    post({ kind: "done", value: carryOut(data.order, transfer) }, transfer);
  } catch (error) {
    post({ kind: "failed", error: postedError(error) });
  }
  if ("text" in data.order && data.order.text.length >= COLLECTED_LENGTH_MIN) returnGarbage();
};

function carryOut(order: Order, transfer: Transferable[]): unknown {
  if (order.want === "bounds") return boundsOf(order.text);
  if (order.want === "analysis") {
    const { statement, details } = order.analysis;
    return explainNodes(mapStatement(statement, unpackPlan), details);
  }
  const planned = statementOf(order);
  const [plan] = plansOf(planned.bound);
  switch (order.want) {
    case "statement": {
      const { parameters, hasMetadata, asksServer } = planned;
      const isOpen = (given: Plan) => parameters.length > 0 || hasMetadata || asksServer || usesClock(given);
      const bound = mapStatement(planned.bound, (given) => packPlan(given, isOpen(given), transfer));
      // This thread binds packed plans by values, each time that it completes them.
      const isHere = plansOf(bound).some((each) => treeOf(each) === undefined);
      return { ...planned, bound, boundByValues: planned.boundByValues && !isHere };
    }
    case "plan":
      return packPlan(runPlan(plan!, planned, order), false, transfer);
    case "explain": {
      const run = mapStatement(planned.bound.statement!, (given) => runPlan(given, planned, order));
      return explainNodes(run, ask({ kind: "marks", scans: plansOf(run).flatMap(scansOf) }));
    }
  }
}

function statementOf(
  { want, text, parameterTypes, values, user, isOwn, client, schemaVersion, nowMicros }:
    & StatementOrder
    & Pick<Order, "want">,
): Planned {
  const bindNow = (types: (string | undefined)[], parameterValues?: readonly Value[]) =>
    planText(text, {
      catalogue: new AskedCatalogue(),
      ownTables: isOwn ? undefined : OWN_TABLES,
      views: { view: (name) => ask({ kind: "view", name }) },
      parameterTypes: types,
      parameterValues,
      importRoot,
      nowMicros,
      user,
      client,
      parquetSchema: (path) => parquetSchema(path, importRoot),
      effort,
      poll,
    });
  // Bound for one execution, so it is not cached.
  if (want === "statement" && values.length > 0) return bindNow(parameterTypes, values);
  const key = JSON.stringify([schemaVersion, user, isOwn, parameterTypes, text]);
  // A statement to prepare is bound again, as on main.
  let planned = want === "statement" ? undefined : kept.get(key);
  kept.delete(key);
  // Before the statement is bound, so that a large one is not beside another one.
  let length = key.length + kept.keys().reduce((sum, each) => sum + each.length, 0);
  for (const oldest of kept.keys()) {
    if (kept.size < KEPT_MAX && length <= KEPT_LENGTH_MAX) break;
    kept.delete(oldest);
    length -= oldest.length;
  }
  if (planned === undefined || planned.boundAnew) planned = bindNow(parameterTypes);
  kept.set(key, planned);
  return planned.boundByValues && want !== "statement" ? bindNow(planned.parameters, values) : planned;
}

/** Adds everything that depends on the execution. */
function runPlan(plan: Plan, planned: Planned, { values, nowMicros, user }: StatementOrder): Plan {
  let run = planOfRun(plan, planned, { values, nowMicros: () => nowMicros, user });
  if (planned.hasMetadata) {
    run = mapPlan(run, (node) => node.node === "metadata" ? ask({ kind: "metadata", node }) : node);
  }
  return planned.asksServer ? substituteCalls(run, (call) => ask({ kind: "call", call })) : run;
}

/** Throws if the statement was cancelled. */
function poll(): void {
  if (Atomics.load(control, CONTROL.cancel) !== 0) throw cancelError(CANCEL.byUser, 0);
}

function ask<K extends keyof Answers>(question: Question & { kind: K }): Answers[K] {
  post({ kind: "question", question });
  for (;;) {
    const seen = Atomics.load(control, CONTROL.answers);
    const got = receiveMessageOnPort(answers);
    if (got !== undefined) return (got.message as { answer: Answers[K] }).answer;
    poll();
    Atomics.wait(control, CONTROL.answers, seen, SLEEP_MS);
  }
}

/** Main's tables. Each is requested once for each statement. */
class AskedCatalogue implements Catalogue {
  readonly version = 0;
  private readonly known = new Map<string, TableSnapshot | undefined>();

  table(name: string): TableSnapshot | undefined {
    const key = name.toLowerCase();
    if (!this.known.has(key)) this.known.set(key, this.ask(name));
    return this.known.get(key);
  }

  tables(): TableSnapshot[] {
    return ask({ kind: "tables" }).map(snapshotOf);
  }

  private ask(name: string): TableSnapshot | undefined {
    const schema = ask({ kind: "table", name });
    return schema && snapshotOf(schema);
  }

  tableById(): never {
    throw new Error("the planner looks tables up by name only");
  }

  pin(): never {
    throw new Error("the planner reads no rows");
  }
}

function snapshotOf(schema: TableSchema): TableSnapshot {
  const unknown = (): never => {
    throw new Error("binding does not read rows of tables");
  };
  let known: TableFacts | undefined;
  const facts = () => known ??= ask({ kind: "facts", tableId: schema.id });
  return {
    schema,
    get rowCount() {
      return facts().rowCount;
    },
    get timestampMin() {
      return facts().timestampMin;
    },
    get timestampMax() {
      return facts().timestampMax;
    },
    get partitionMin() {
      return unknown();
    },
    get version() {
      return unknown();
    },
    get lsn() {
      return unknown();
    },
    partitions: unknown,
    timedPages: unknown,
    detachedPartitions: unknown,
    columnStorage: unknown,
    source: unknown,
  };
}
