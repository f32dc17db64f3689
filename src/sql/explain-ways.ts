/** Describes the physical choices for EXPLAIN. */
import type { Calls, Grouping, GroupSpec, PhysicalPlan, SpillWay } from "../engine/mod.ts";

/** `pipeline`: the number of the kernels that run the operator and the nodes below it in one pass. */
export function wayMarks(physical: PhysicalPlan, calls: Calls | undefined, pipeline: number | undefined): string[] {
  const marks = waysOf(physical), kernels = callsMarks(calls);
  if (pipeline === undefined) return [...kernels, ...marks];
  const [first = "fused", ...more] = kernels;
  return [`pipeline ${pipeline}: ${first}`, ...more, ...marks];
}

function callsMarks(calls: Calls | undefined): string[] {
  if (calls === undefined) return [];
  const marks: string[] = [];
  if (calls.batch.length > 0) marks.push(`between kernels ${calls.batch.join(", ")}`);
  else if (calls.perSymbol.length > 0) marks.push("fused");
  if (calls.perSymbol.length > 0) marks.push(`once for each symbol ${calls.perSymbol.join(", ")}`);
  if (calls.measured.length > 0) {
    marks.push(`between kernels or once for each symbol, by the dictionaries: ${calls.measured.join(", ")}`);
  }
  return marks;
}

function waysOf(physical: PhysicalPlan): string[] {
  switch (physical.operator) {
    case "pipeline":
      return physical.ahead !== undefined ? ["reads ahead on all threads if that pays off"] : [];
    case "unnest":
    case "recursion":
    case "source":
      return [];
    case "aggregate":
      return groupMarks(physical.grouping);
    case "sample":
      if (physical.way.kind === "runs") {
        return ["runs of rows between edges found by search", ...segmentMarks(physical.way.spec)];
      }
      return [
        physical.way.kind === "computed" ? "buckets computed in the kernel" : "each row with its bucket",
        ...groupMarks(physical.way.groups),
      ];
    case "sort": {
      const { way } = physical;
      switch (way.kind) {
        case "all":
          return [
            "keeps all rows",
            ...(way.inRowFormat ? ["in row format if the memory allows"] : []),
            ...spillMarks(way),
          ];
        case "best":
          return [`keeps the best ${way.limit} rows`, ...SKIPS[way.skip], ...spillMarks(way)];
        case "best by morsels":
          return [`each thread keeps the best ${way.limit} rows`, ...SKIPS[way.skip], ...spillMarks(way)];
        case "top":
          return ["finds rows by their keys, then reads their columns", ...spillMarks(way)];
      }
      break;
    }
    case "join":
      return joinMarks(physical);
    case "window join":
      return ["keeps the right rows of the windows of some left rows"];
    case "horizon join":
      return ["keeps the right rows between the least and the greatest time of some left rows"];
    case "time join":
      return ["keeps the last right row of each key", ...spillMarks(physical)];
    case "set":
      switch (physical.way) {
        case "chain":
          return [];
        case "new rows":
          return ["hash table of the rows seen", ...spillMarks(physical)];
        case "against right":
          return ["hash table of the right side", ...spillMarks(physical)];
      }
      break;
    case "latest":
      switch (physical.way.kind) {
        case "by symbol":
          return ["newest segments first, until each symbol is found"];
        case "newest first":
          return ["newest rows first", ...(physical.way.groups === undefined ? [] : groupMarks(physical.way.groups))];
        case "groups":
          return ["last row of each group", ...groupMarks(physical.way.groups)];
        case "all rows":
          return ["keeps one row a key"];
      }
      break;
    case "limit": {
      const { way } = physical;
      switch (way.kind) {
        case "first":
          return [];
        case "last":
          return [`keeps ${way.count} rows`];
        case "last of reversed":
          return ["read from the end"];
        case "without ends":
          return [`keeps ${way.without} rows`];
      }
      break;
    }
    case "window":
      return [physical.way.kind === "streaming" ? "streaming" : "over kept rows", ...spillMarks(physical.way)];
  }
}

function spillMarks({ spill }: { spill?: SpillWay }): string[] {
  return spill === undefined ? [] : [`spill: ${spill}`];
}

const SKIPS = { kernel: ["a kernel skips the others"], "row by row": [], none: ["skips none"] } as const;

const TABLES = {
  single: [],
  dense: ["dense table"],
  hash: ["hash table"],
  measured: ["dense or hash table, by the dictionaries of its keys"],
} as const;

const SEGMENTS = {
  codes: ["adds up packed codes by segments"],
  values: ["by segments"],
  masks: ["marks rows by packed codes"],
} as const;

function segmentMarks({ segments, table }: GroupSpec): readonly string[] {
  return segments === undefined || (table === "hash" && segments !== "masks") ? [] : SEGMENTS[segments];
}

function groupMarks({ way }: Grouping): string[] {
  switch (way.kind) {
    case "kernel":
      if (way.reads === "count") return ["by the number of rows"];
      return [
        ...TABLES[way.spec.table],
        ...segmentMarks(way.spec),
        ...(way.spec.staged === true ? ["keys and arguments as columns"] : []),
        ...(way.spec.staged === "measured" ? ["keys and arguments as columns, if dictionaries are large"] : []),
        ...(way.reads === "one range" ? ["one table"] : []),
        ...spillMarks(way),
      ];
    case "batches":
      return [...TABLES[way.table], ...spillMarks(way)];
    case "bits":
      return ["a bit for each value"];
    case "values":
      return ["counts the groups of values", ...groupMarks(way.groups)];
    case "pairs":
      return ["counts the groups of keys and values", ...groupMarks(way.pairs)];
    case "side by side":
      return way.parts.map(({ way, node }, k) =>
        `pass ${k + 1}: ${
          [node.aggregates.map((call) => call.function).join(", "), ...groupMarks({ way, node })].join(", ")
        }`
      );
  }
}

const KEYS = { value: "values", wide: "values", text: "texts", symbol: "symbols" } as const;

function joinMarks(physical: PhysicalPlan & { operator: "join" }): string[] {
  if (physical.way === "splice") {
    return ["keeps both sides if the memory allows, or the last row of each key", ...spillMarks(physical)];
  }
  const { keyKinds, byMorsels, way } = physical;
  const kept = way === "pairs" ? [] : ["keeps all right rows if read by morsels, or the last one of each key"];
  if (keyKinds.length === 0) return way === "pairs" ? ["all pairs"] : kept;
  const isDense = keyKinds.every((kind) => kind === "value" || kind === "symbol");
  return [
    `keys by ${keyKinds.map((kind) => KEYS[kind]).join(", ")}`,
    isDense ? "dense or hash index, by the range of the right keys" : "hash index",
    ...(byMorsels ? [] : ["left rows in order"]),
    ...kept,
    ...spillMarks(physical),
  ];
}
