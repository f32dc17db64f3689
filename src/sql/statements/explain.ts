import type { Answer, ExplainedPlan } from "../../api.ts";
import type { PostedPlan } from "../../engine/contract.ts";
import { assert } from "../../assert.ts";
import { notSupported, SqlError, SQLSTATE } from "../../errors.ts";
import type { Statement } from "../ast.ts";
import { unexpected } from "../expectations.ts";
import { explainJson } from "../explain-json.ts";
import { explainLines, type ExplainNode, explainTree } from "../explain-lines.ts";
import { sizeText, timeText } from "../explain-statistics.ts";
import { isMark, isWord, type Token } from "../lexer.ts";
import type { BoundStatement, Plan } from "../plan.ts";
import type { StatementKind, StatementRun } from "./statement.ts";

const COLUMNS = [{ name: "QUERY PLAN", type: "STRING" }];

type Format = "text" | "json";

interface Options {
  analyze: boolean;
  format: Format;
}

export interface Explain extends Statement, Options {
  kind: "explain";
  statement: Statement;
}

interface BoundExplain<P = PostedPlan> extends BoundStatement<P>, Options {
  kind: "explain";
  statement: BoundStatement<P>;
}

/** Options of PostgreSQL that have no meaning here. Its clients send them with each plan. */
const WITHOUT_EFFECT = [
  "VERBOSE",
  "COSTS",
  "SETTINGS",
  "GENERIC_PLAN",
  "BUFFERS",
  "WAL",
  "TIMING",
  "SUMMARY",
  "MEMORY",
];
const ON = ["TRUE", "ON", "1"], OFF = ["FALSE", "OFF", "0"];

export const explain: StatementKind<Explain, BoundExplain> = {
  kind: "explain",
  form: {
    reader: {
      words: ["EXPLAIN"],
      keywords: ["ANALYZE"],
      read(tokens, from, to, inner): Explain {
        const { begin, ...options } = optionsOf(tokens, from + 1, to);
        if (begin === to || isWord(tokens[begin], "EXPLAIN")) throw unexpected(tokens[begin]!, ["a statement"]);
        return { kind: "explain", at: tokens[from]!.at, ...options, statement: inner(begin) };
      },
    },
  },
  reference: {
    syntax: "EXPLAIN [ANALYZE | (option [, …])] statement",
    summary:
      "Shows the plan of a statement. ANALYZE executes it and shows rows, time and memory of each operator. Options are `ANALYZE` and " +
      "`FORMAT TEXT` or `FORMAT JSON`, which gives one text with the names that PostgreSQL uses. PostgreSQL's other options have no effect.",
  },
  /** ANALYZE executes the statement. */
  category: "query",
  categoryOf: ({ analyze, statement }, categoryOf) => analyze ? categoryOf(statement) : "query",
  requires: [],

  bind({ analyze, format, statement }, queries): BoundExplain<Plan> {
    if (statement.kind === "explain") throw new SqlError("EXPLAIN cannot be explained", statement.at, SQLSTATE.syntax);
    const bound = queries.language.bind(statement, queries);
    if (analyze && bound.plan === undefined) {
      throw notSupported("EXPLAIN ANALYZE of a statement that reads nothing", statement.at);
    }
    return { kind: "explain", analyze, format, statement: bound };
  },

  rows: () => ({ columns: COLUMNS, timestamp: -1, tag: "EXPLAIN" }),
  execute: async ({ analyze, format, statement }, run) =>
    analyze
      ? await analyzed(statement, format, run)
      : await explained(await run.explain(statement), [], {}, format, run),
};

async function analyzed(statement: BoundStatement<PostedPlan>, format: Format, run: StatementRun): Promise<Answer> {
  const { nodes, nanos, statistics, changedRows } = await run.analyze(statement);
  const lines: string[] = [];
  if (changedRows !== undefined) {
    const writing = nanos - (statistics?.nodes[0]?.nanos ?? 0);
    lines.push(`Changed ${changedRows} rows, time excluding reads ${timeText(writing)}`);
  }
  const memoryPeakBytes = statistics?.memoryPeakBytes;
  const memory = memoryPeakBytes === undefined ? "" : `, peak memory ${sizeText(memoryPeakBytes)}`;
  lines.push(`Execution time ${timeText(nanos)}${memory}`);
  return await explained(nodes, lines, { executionNanos: nanos, memoryPeakBytes, changedRows }, format, run);
}

/** Returns the answer. `more`: lines after those of the nodes, if it is text. */
async function explained(
  nodes: readonly ExplainNode[],
  more: readonly string[],
  totals: Omit<ExplainedPlan, "root">,
  format: Format,
  run: StatementRun,
): Promise<Answer> {
  const plan = { root: explainTree(nodes), ...totals };
  const rows = format === "json" ? [[explainJson(plan)]] : [...explainLines(nodes), ...more].map((line) => [line]);
  const answer = await run.query({ node: "values", columns: COLUMNS, timestamp: -1, order: "none", rows });
  assert(answer.kind === "rows", "a query returns rows");
  answer.explained = plan;
  return answer;
}

/** Reads what stands between EXPLAIN and the statement, which begins at `begin`. A table called `analyze` may be explained too. */
function optionsOf(tokens: Token[], from: number, to: number): Options & { begin: number } {
  const isTable = from + 1 === to || isWord(tokens[from + 1], "WHERE", "ORDER", "LIMIT", "SAMPLE", "LATEST", "GROUP");
  if (isWord(tokens[from], "ANALYZE", "ANALYSE") && !isTable) return { analyze: true, format: "text", begin: from + 1 };
  const options: Options = { analyze: false, format: "text" };
  if (!isMark(tokens[from], "(") || !isOption(tokens[from + 1]!)) return { ...options, begin: from };
  for (let at = from + 1;;) {
    at = readOption(tokens, at, options);
    if (isMark(tokens[at], ")")) return { ...options, begin: at + 1 };
    if (!isMark(tokens[at], ",")) throw unexpected(tokens[at]!, [",", ")"]);
    at++;
  }
}

function isOption(token: Token): boolean {
  return isWord(token, "ANALYZE", "ANALYSE", "FORMAT", ...WITHOUT_EFFECT);
}

/** Returns the place behind the option. */
function readOption(tokens: Token[], at: number, options: Options): number {
  const name = tokens[at]!, value = tokens[at + 1]!;
  if (!isOption(name)) throw unexpected(name, ["ANALYZE", "FORMAT"]);
  if (isWord(name, "FORMAT")) {
    if (!isWord(value, "TEXT", "JSON")) throw unexpected(value, ["TEXT", "JSON"]);
    options.format = isWord(value, "JSON") ? "json" : "text";
    return at + 2;
  }
  const isGiven = !isMark(value, ",") && !isMark(value, ")"), text = value.text.toUpperCase();
  if (isGiven && !ON.includes(text) && !OFF.includes(text)) throw unexpected(value, ["true", "false", ",", ")"]);
  if (isWord(name, "ANALYZE", "ANALYSE")) options.analyze = !OFF.includes(text);
  return isGiven ? at + 2 : at + 1;
}
