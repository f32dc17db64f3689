/** The model of a dashboard: panels, variables and a time range, as stored and as exported to a file. */
import type { ChartType } from "../charts/shape.ts";
import { isRange, type Range } from "./range.ts";

export const KINDS = ["chart", "table", "number"] as const;
export const CHART_TYPES = ["line", "area", "bar", "scatter", "candlestick", "heat map"] as const satisfies ChartType[];
export const WIDTHS = { "a quarter": 3, "a third": 4, "half": 6, "two thirds": 8, "the whole row": 12 } as const;
export const HEIGHTS = { low: "low", medium: "medium", high: "high" } as const;
export const UNITS = ["plain", "bytes", "percent", "seconds", "milliseconds"] as const;

export interface Panel {
  /** Unique within its dashboard. */
  id: number;
  title: string;
  /** Contains variables as `@name`. */
  statement: string;
  kind: typeof KINDS[number];
  /** Undefined: the type that suits the rows best. */
  chartType?: ChartType;
  /** Width in columns, of twelve. */
  width: number;
  height: keyof typeof HEIGHTS;
  unit: typeof UNITS[number];
}

export interface Variable {
  /** Without `@`. */
  name: string;
  type: "text" | "number";
  /** With `isList` a list as JSON. */
  value: string;
  /** The values to choose from: a list, or the first column of a statement. Without either, any value can be typed. */
  choices?: string[];
  statement?: string;
  /** True if the empty value can also be chosen. */
  hasAll?: boolean;
  /** Any number of the choices can be chosen. An empty list stands for all of them. */
  isList?: boolean;
}

/** The chosen values of a variable with `isList`. */
export function listOf({ value }: Pick<Variable, "value">): string[] {
  try {
    const list = JSON.parse(value);
    return Array.isArray(list) ? list.map(String) : [];
  } catch {
    return [];
  }
}

export interface Definition {
  version: 1;
  range: Range;
  /** Seconds between refreshes; 0 means manual. */
  refreshSeconds: number;
  variables: Variable[];
  panels: Panel[];
}

export const EMPTY: Definition = { version: 1, range: { last: "24h" }, refreshSeconds: 0, variables: [], panels: [] };

const NAME = /^[A-Za-z_]\w{0,60}$/;
/** Names of variables that every dashboard has. */
const OWN_NAMES = ["from", "to", "interval"];

/** Returns the error in the name of a new variable. Undefined if it is valid. */
export function variableFault(name: string, others: readonly Variable[]): string | undefined {
  if (!NAME.test(name)) return "A name must consist of letters, digits and _, and must not begin with a digit.";
  const same = (other: string) => other.toLowerCase() === name.toLowerCase();
  if (OWN_NAMES.some(same)) return `@${name} is defined by the dashboard.`;
  return others.some((other) => same(other.name)) ? `The variable @${name} already exists.` : undefined;
}

/** Returns a text with the error if the value is invalid. */
export function definitionOf(value: unknown): Definition | string {
  const { version, range, refreshSeconds, variables, panels } = (value ?? {}) as Partial<Definition>;
  if (version !== 1) return `version: found ${JSON.stringify(version)}, expected 1`;
  if (!isRange(range)) return "range: expected a time range";
  if (typeof refreshSeconds !== "number" || !(refreshSeconds >= 0)) return "refreshSeconds: expected a number from 0";
  if (!Array.isArray(variables)) return "variables: expected an array";
  if (!Array.isArray(panels)) return "panels: expected an array";
  const known: Variable[] = [];
  for (const one of variables) {
    const fault = variableFaultOf(one, known);
    if (fault !== undefined) return `variables[${known.length}]: ${fault}`;
    known.push(one);
  }
  const index = panels.findIndex((one) => !isPanel(one));
  if (index >= 0) return `panels[${index}]: expected title, statement, kind, width, height and unit`;
  return { version, range, refreshSeconds, variables, panels: panels.map((one, at) => ({ ...one, id: at + 1 })) };
}

function variableFaultOf(one: Partial<Variable>, known: readonly Variable[]): string | undefined {
  const { name, type, value, choices, statement, isList } = one ?? {};
  if (typeof name !== "string") return "expected a name";
  if (type !== "text" && type !== "number") return `type: found ${JSON.stringify(type)}, expected text or number`;
  if (typeof value !== "string") return "value: expected a text";
  if (choices !== undefined && !(Array.isArray(choices) && choices.every((text) => typeof text === "string"))) {
    return "choices: expected an array of texts";
  }
  if (statement !== undefined && typeof statement !== "string") return "statement: expected a text";
  if (isList === true && choices === undefined && statement === undefined) return "isList: expected choices";
  return variableFault(name, known);
}

function isPanel(value: unknown): value is Panel {
  const { title, statement, kind, chartType, width, height, unit } = (value ?? {}) as Partial<Panel>;
  return typeof title === "string" && typeof statement === "string" && KINDS.includes(kind!) &&
    (chartType === undefined || CHART_TYPES.includes(chartType)) && Object.values(WIDTHS).includes(width as 3) &&
    Object.hasOwn(HEIGHTS, height ?? "") && UNITS.includes(unit!);
}

const FILE_KIND = "sundial-dashboard";

export function fileTextOf(name: string, definition: Definition): string {
  return JSON.stringify({ kind: FILE_KIND, name, ...definition }, null, 2) + "\n";
}

/** Returns a text with the error if the file is not a dashboard. */
export function readFileText(text: string): { name: string; definition: Definition } | string {
  let value: Record<string, unknown>;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return `It is not JSON: ${(error as Error).message}`;
  }
  if (value?.kind !== FILE_KIND) return `It has no "kind": "${FILE_KIND}".`;
  const definition = definitionOf(value);
  if (typeof definition === "string") return definition;
  return { name: typeof value.name === "string" && value.name.trim() !== "" ? value.name : "Dashboard", definition };
}

/** Returns the definition with the panel, which gets a new id, at the end. */
export function withPanel(definition: Definition, panel: Omit<Panel, "id">): Definition {
  const id = Math.max(0, ...definition.panels.map((one) => one.id)) + 1;
  return { ...definition, panels: [...definition.panels, { ...panel, id }] };
}
