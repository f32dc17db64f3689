import type { Answer, ExplainedPlan } from "../../api.ts";
import type { PostedPlan } from "../../engine/contract.ts";
import { assert } from "../../assert.ts";
import { notSupported, SqlError, SQLSTATE } from "../../errors.ts";
import type { Statement } from "../ast.ts";
import { unexpected } from "../expectations.ts";
import { explainLines, type ExplainNode, explainTree } from "../explain-lines.ts";
import { sizeText, timeText } from "../explain-statistics.ts";
import { isMark, isWord, type Token } from "../lexer.ts";
import type { BoundStatement, Plan } from "../plan.ts";
import type { StatementKind, StatementRun } from "./statement.ts";

const COLUMNS = [{ name: "QUERY PLAN", type: "STRING" }];

export interface Explain extends Statement {
  kind: "explain";
  analyze: boolean;
  statement: Statement;
}

interface BoundExplain<P = PostedPlan> extends BoundStatement<P> {
  kind: "explain";
  analyze: boolean;
  statement: BoundStatement<P>;
}

export const explain: StatementKind<Explain, BoundExplain> = {
  kind: "explain",
  form: {
    reader: {
      words: ["EXPLAIN"],
      keywords: ["ANALYZE"],
      read(tokens, from, to, inner): Explain {
        const words = analyzeWords(tokens, from, to);
        const begin = from + 1 + words + (words === 0 ? formatWords(tokens, from) : 0);
        if (begin === to || isWord(tokens[begin], "EXPLAIN")) throw unexpected(tokens[begin]!, ["a statement"]);
        return { kind: "explain", at: tokens[from]!.at, analyze: words > 0, statement: inner(begin) };
      },
    },
  },
  reference: {
    syntax: "EXPLAIN [ANALYZE] statement",
    summary:
      "Shows the plan of a statement. ANALYZE executes it and shows rows, time and memory of each operator. `(FORMAT TEXT)` behind " +
      "EXPLAIN has no effect.",
  },
  /** ANALYZE executes the statement. */
  category: "query",
  categoryOf: ({ analyze, statement }, categoryOf) => analyze ? categoryOf(statement) : "query",
  requires: [],

  bind({ analyze, statement }, queries): BoundExplain<Plan> {
    if (statement.kind === "explain") throw new SqlError("EXPLAIN cannot be explained", statement.at, SQLSTATE.syntax);
    const bound = queries.language.bind(statement, queries);
    if (analyze && bound.plan === undefined) {
      throw notSupported("EXPLAIN ANALYZE of a statement that reads nothing", statement.at);
    }
    return { kind: "explain", analyze, statement: bound };
  },

  rows: () => ({ columns: COLUMNS, timestamp: -1, tag: "EXPLAIN" }),
  execute: async ({ analyze, statement }, run) =>
    analyze ? await analyzed(statement, run) : await explained(await run.explain(statement), [], {}, run),
};

async function analyzed(statement: BoundStatement<PostedPlan>, run: StatementRun): Promise<Answer> {
  const { nodes, nanos, statistics, changedRows } = await run.analyze(statement);
  const lines: string[] = [];
  if (changedRows !== undefined) {
    const writing = nanos - (statistics?.nodes[0]?.nanos ?? 0);
    lines.push(`Changed ${changedRows} rows, time excluding reads ${timeText(writing)}`);
  }
  const memoryPeakBytes = statistics?.memoryPeakBytes;
  const memory = memoryPeakBytes === undefined ? "" : `, peak memory ${sizeText(memoryPeakBytes)}`;
  lines.push(`Execution time ${timeText(nanos)}${memory}`);
  return await explained(nodes, lines, { executionNanos: nanos, memoryPeakBytes, changedRows }, run);
}

/** Returns the answer. `more`: lines after those of the nodes. */
async function explained(
  nodes: readonly ExplainNode[],
  more: readonly string[],
  totals: Omit<ExplainedPlan, "root">,
  run: StatementRun,
): Promise<Answer> {
  const rows = [...explainLines(nodes), ...more].map((line) => [line]);
  const answer = await run.query({ node: "values", columns: COLUMNS, timestamp: -1, order: "none", rows });
  assert(answer.kind === "rows", "a query returns rows");
  answer.explained = { root: explainTree(nodes), ...totals };
  return answer;
}

/** Number of words of ANALYZE or (ANALYZE) after EXPLAIN. A table called `analyze` may be explained too. */
function analyzeWords(tokens: Token[], from: number, to: number): number {
  if (
    isMark(tokens[from + 1], "(") && isWord(tokens[from + 2], "ANALYZE", "ANALYSE") && isMark(tokens[from + 3], ")")
  ) return 3;
  const isTable = from + 2 === to || isWord(tokens[from + 2], "WHERE", "ORDER", "LIMIT", "SAMPLE", "LATEST", "GROUP");
  return isWord(tokens[from + 1], "ANALYZE", "ANALYSE") && !isTable ? 1 : 0;
}

/** Number of words of (FORMAT TEXT) after EXPLAIN. */
function formatWords(tokens: Token[], from: number): number {
  const format = tokens[from + 3];
  const isFormat = isMark(tokens[from + 1], "(") && isWord(tokens[from + 2], "FORMAT") && format?.kind === "word" &&
    isMark(tokens[from + 4], ")");
  if (!isFormat) return 0;
  if (!isWord(format, "TEXT")) throw notSupported(`EXPLAIN in the format ${format.text}`, format.at);
  return 4;
}
