/** Describes a node of the logical plan for EXPLAIN. */
import { exprText, intervalsText } from "./explain-text.ts";
import {
  type AggregateCall,
  type Expr,
  inputsOf,
  type Plan,
  type SortKey,
  type WindowBound,
  type WindowFrame,
} from "./plan.ts";

/** Returns the first line and further lines that belong to the node. */
export function describe(plan: Plan): string[] {
  const names = plan.columns.map((column) => column.name);
  const inputs = inputNames(plan);
  const text = (e: Expr): string => exprText(e, inputs);
  switch (plan.node) {
    case "scan": {
      const lines = [
        `Scan ${plan.tableName}${plan.reverse ? ", newest first" : ""}: ${names.join(", ") || "no columns"}`,
      ];
      if (plan.intervals !== undefined) lines.push(`time: ${intervalsText(plan.intervals, timeType(plan))}`);
      if (plan.predicate !== undefined) lines.push(`where ${exprText(plan.predicate, names)}`);
      return lines;
    }
    case "parquet":
      return [`Parquet ${plan.path.split(/[\\/]/).at(-1)}: ${names.join(", ")}`];
    case "spooled":
      return [`Spooled rows: ${names.join(", ")}`];
    case "values":
      if (plan.ofStatistics) return [`From statistics: ${names.join(", ")}`];
      return [`Rows: ${plan.rows.length}`];
    case "metadata":
      return [`Metadata ${plan.source}(${plan.args.map(String).join(", ")})`];
    case "files":
      return [`Files: ${names.join(", ")}`];
    case "sequence":
      return [`Sequence of ${plan.count} from ${plan.start} by ${plan.step}`];
    case "filter":
      return [`Filter ${text(plan.predicate)}`];
    case "project":
      return [`Project ${plan.expressions.map((e, i) => named(text(e), names[i]!)).join(", ")}`];
    case "aggregate":
      return [`Aggregate ${aggregatesText(plan.aggregates, text)}`, ...keysLine("by", plan.keys, text)];
    case "sample": {
      const { count, unit, align, timeZone } = plan.sampling;
      const fills = plan.fills.length === 0 ? "" : `, fill(${plan.fills.map((fill) => fill.kind).join(", ")})`;
      return [
        `Sample by ${count}${unit}, align to ${align}${timeZone === "" ? "" : ` in ${timeZone}`}${fills}: ${
          aggregatesText(plan.aggregates, text)
        }`,
        ...keysLine("by", plan.keys, text),
      ];
    }
    case "latest":
      return [`Latest on ${text(plan.time)}`, ...keysLine("by", plan.keys, text)];
    case "sort":
      return [`Sort ${sortText(plan.keys, text)}${plan.limit === undefined ? "" : `, first ${plan.limit}`}`];
    case "limit":
      return [`Limit ${plan.low === undefined ? "" : `${text(plan.low)}, `}${text(plan.high)}`];
    case "distinct":
      return ["Distinct"];
    case "join":
    case "timeJoin": {
      const leftNames = plan.left.columns.map((column) => column.name);
      const rightNames = plan.right.columns.map((column) => column.name);
      const keys = plan.leftKeys.map((key, i) =>
        `${exprText(key, leftNames)} = ${exprText(plan.rightKeys[i]!, rightNames)}`
      );
      const lines = [
        `${
          plan.type === "asof" || plan.type === "lt" || plan.type === "splice"
            ? plan.type.toUpperCase()
            : capital(plan.type)
        } join${keys.length === 0 ? "" : ` on ${keys.join(" and ")}`}`,
      ];
      if (plan.node === "join" && plan.residual !== undefined) {
        lines.push(`where ${exprText(plan.residual, [...leftNames, ...rightNames])}`);
      }
      if (plan.node === "timeJoin" && plan.tolerance !== undefined) lines.push(`tolerance ${plan.tolerance}`);
      return lines;
    }
    case "windowJoin":
    case "horizonJoin": {
      const leftNames = plan.left.columns.map((column) => column.name);
      const rightNames = plan.right.columns.map((column) => column.name);
      const keys = plan.leftKeys.map((key, i) =>
        `${exprText(key, leftNames)} = ${exprText(plan.rightKeys[i]!, rightNames)}`
      ).join(" and ");
      const on = keys === "" ? "" : ` on ${keys}`;
      if (plan.node === "horizonJoin") {
        const { offsets } = plan, count = offsets.length;
        return [
          `HORIZON join${on}`,
          `${count} offset${count === 1 ? "" : "s"} from ${offsets[0]} to ${offsets.at(-1)}`,
        ];
      }
      const both = (e: Expr): string => exprText(e, [...leftNames, ...rightNames]);
      const bound = ({ offset, unit, direction }: WindowBound): string => {
        if (offset.kind !== "constant" || offset.value === null) {
          return `${exprText(offset, leftNames)}${unit === 1n ? "" : ` * ${unit}`} ${direction}`;
        }
        const distance = BigInt(offset.value as bigint) * unit;
        return distance === 0n ? "current row" : `${distance} ${direction}`;
      };
      return [
        `WINDOW join${on}: ${aggregatesText(plan.aggregates, both)}`,
        `range between ${bound(plan.start)} and ${bound(plan.end)}, ${
          plan.includesPrevailing ? "include" : "exclude"
        } prevailing`,
        ...(plan.residual === undefined ? [] : [`where ${both(plan.residual)}`]),
      ];
    }
    case "window":
      return [
        "Window",
        ...plan.calls.map((call) => {
          const parts = [
            ...(call.partitionBy.length === 0 ? [] : [`partition by ${call.partitionBy.map(text).join(", ")}`]),
            ...(call.orderBy.length === 0 ? [] : [`order by ${sortText(call.orderBy, text)}`]),
            frameText(call.frame),
          ];
          return `${callText(call.function, call.args.map(text))} over (${parts.join(" ")})`;
        }),
      ];
    case "set":
      return [capital(plan.operator)];
    case "unnest":
      return [`Unnest ${plan.arrays.map(text).join(", ")}`];
    case "recursion":
      return [`Recursion${plan.distinct ? ", distinct" : ""}`];
    case "working":
      return ["Rows of the round before"];
  }
}

function inputNames(plan: Plan): string[] {
  return inputsOf(plan).flatMap((input) => input.columns.map((column) => column.name));
}

function capital(text: string): string {
  return text[0]!.toUpperCase() + text.slice(1);
}

function named(text: string, name: string): string {
  return text === name ? text : `${text} as ${name}`;
}

function keysLine(word: string, keys: Expr[], text: (e: Expr) => string): string[] {
  return keys.length === 0 ? [] : [`${word} ${keys.map(text).join(", ")}`];
}

function aggregatesText(calls: AggregateCall[], text: (e: Expr) => string): string {
  return calls.map((call) => callText(call.function, call.args.map(text))).join(", ") || "keys only";
}

function callText(id: string, args: string[]): string {
  return `${id.slice(0, id.indexOf("("))}(${args.join(", ")})`;
}

function sortText(keys: SortKey[], text: (e: Expr) => string): string {
  return keys.map((key) => `${text(key.expression)}${key.descending ? " desc" : ""}`).join(", ");
}

function frameText(frame: WindowFrame): string {
  const bound = (offset: bigint | undefined, open: string): string =>
    offset === undefined
      ? open
      : offset === 0n
      ? "current row"
      : offset < 0n
      ? `${-offset} preceding`
      : `${offset} following`;
  return `${frame.unit} between ${bound(frame.start, "unbounded preceding")} and ${
    bound(frame.end, "unbounded following")
  }`;
}

function timeType(plan: Plan): string {
  return plan.timestamp < 0 ? "TIMESTAMP" : plan.columns[plan.timestamp]!.type;
}
