/** The plan of EXPLAIN as a tree. With ANALYZE, it includes the measurements of each operator. */
import type { PlanNode, QueryPlan } from "../server/plan.ts";
import { bytesText, time } from "./summary.ts";

interface Line {
  node: PlanNode;
  depth: number;
  /** Share of the time of all operators. Undefined if it was not measured. */
  share?: number;
  isCostliest: boolean;
}

export function PlanTree({ plan }: { plan: QueryPlan }) {
  const lines = linesOf(plan.root);
  const isMeasured = lines.some(({ node }) => node.measured !== undefined);
  const { executionNanos, memoryPeakBytes, changedRows } = plan;
  return (
    <div class="plan" tabIndex={0} aria-label="Plan">
      {executionNanos !== undefined && (
        <p class="summary">
          {time(executionNanos / 1e6)}
          {memoryPeakBytes !== undefined && ` · at most ${bytesText(memoryPeakBytes)} of memory`}
          {changedRows !== undefined && ` · ${changedRows.toLocaleString("en")} rows changed`}
        </p>
      )}
      <table>
        <thead>
          <tr>
            <th scope="col">Operator</th>
            {isMeasured && (
              <>
                <th scope="col">Own time</th>
                <th scope="col" class="number">Rows</th>
                <th scope="col" class="number">Bytes</th>
                <th scope="col" class="number">Memory</th>
              </>
            )}
          </tr>
        </thead>
        <tbody>
          {lines.map((line, at) => <PlanLine key={at} line={line} isMeasured={isMeasured} />)}
        </tbody>
      </table>
    </div>
  );
}

function PlanLine({ line: { node, depth, share, isCostliest }, isMeasured }: { line: Line; isMeasured: boolean }) {
  const { text, details, notes, isFused, measured = {} } = node;
  const { rows, rowsRead, bytes, bytesRead, ownNanos, nanos, memoryPeakBytes } = measured;
  const read = rowsRead === undefined || rowsRead === 0
    ? []
    : [`read ${rowsRead.toLocaleString("en")} rows, ${bytesText(bytesRead ?? 0)}`];
  return (
    <tr class={isCostliest ? "costliest" : ""}>
      <th scope="row" style={{ paddingLeft: `${0.8 + 1.4 * depth}rem` }}>
        {depth > 0 && <span aria-hidden="true" class="branch">└</span>}
        {text}
        {isCostliest && <strong>costliest</strong>}
        {details.map((detail, at) => <code key={at}>{detail}</code>)}
        <small>{[...read, ...notes].join(" · ")}</small>
      </th>
      {isMeasured && (
        <>
          <td class="share" title={nanos === undefined ? undefined : `${time(nanos / 1e6)} with its inputs`}>
            {share === undefined ? <small>{isFused ? "in the operator above" : ""}</small> : (
              <>
                <span class="bar">
                  <span style={{ width: `${100 * share}%` }} />
                </span>
                {time((ownNanos ?? 0) / 1e6)}
                <small>{(100 * share).toFixed(share < 0.1 ? 1 : 0)} %</small>
              </>
            )}
          </td>
          <td class="number">{rows?.toLocaleString("en") ?? ""}</td>
          <td class="number">{bytes === undefined ? "" : bytesText(bytes)}</td>
          <td class="number">
            {memoryPeakBytes === undefined || memoryPeakBytes === 0 ? "" : bytesText(memoryPeakBytes)}
          </td>
        </>
      )}
    </tr>
  );
}

/** The nodes in pre-order. Exported for tests. */
export function linesOf(root: PlanNode): Line[] {
  const lines: Line[] = [];
  const visit = (node: PlanNode, depth: number) => {
    lines.push({ node, depth, isCostliest: false });
    for (const input of node.inputs) visit(input, depth + 1);
  };
  visit(root, 0);
  const timeOf = ({ node }: Line) => node.measured?.ownNanos;
  const total = lines.reduce((sum, line) => sum + (timeOf(line) ?? 0), 0);
  if (total === 0) return lines;
  const most = Math.max(...lines.map((line) => timeOf(line) ?? 0));
  const costliest = lines.findIndex((line) => timeOf(line) === most);
  return lines.map((line, at) => {
    const own = timeOf(line);
    return { ...line, share: own === undefined ? undefined : own / total, isCostliest: at === costliest };
  });
}
