/**
 * Expands repetitions in a regular expression, so that V8 can stop backtracking. V8's linear-time engine accepts only expressions
 * in which nothing is repeated more than 16 times, counting nested repetitions together.
 * @see https://v8.dev/blog/non-backtracking-regexp
 */

/** Maximum total repetition count. */
const FACTOR_MAX = 16;
/** Maximum number of characters, classes and groups in the expanded expression. */
const ATOMS_MAX = 4_000;

export type Node =
  | { kind: "atom"; text: string }
  | { kind: "sequence"; items: Node[] }
  | { kind: "choice"; options: Node[] }
  | { kind: "group"; open: string; body: Node }
  | { kind: "repeat"; body: Node; min: number; max: number; lazy: string };

const ATOM =
  /\\(?:u\{[0-9a-fA-F]+\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[pP]\{[^}]*\}|k<\w+>|\d+|[^])|\[(?:\\[^]|[^\]\\])*\]|[^]/uy;
const OPEN = /\((?:\?(?:<\w+>|[a-z]*(?:-[a-z]+)?:|<?[=!]))?/y;
const QUANTIFIER = /(?:([*+?])|\{(\d+)(?:(,)(\d*))?\})(\??)/y;

/** An expression that cannot be expanded. The message is the second half of a sentence. */
export class Unbounded extends Error {}

/**
 * Returns the same expression for V8's linear-time engine. `source` is valid JavaScript without look-ahead and back
 * references.
 * @param keepsGroups whether the caller needs the contents of groups.
 * @throws {Unbounded}
 */
export function repetitionsWritten(source: string, keepsGroups: boolean, factorMax = FACTOR_MAX): string {
  const writer = new Writer(factorMax);
  return writer.write(parseRegex(source), 1, keepsGroups);
}

/** True if a repetition contains another one. */
export function hasNestedRepetitions(source: string): boolean {
  const look = (node: Node, isInside: boolean): boolean => {
    switch (node.kind) {
      case "atom":
        return false;
      case "sequence":
        return node.items.some((item) => look(item, isInside));
      case "choice":
        return node.options.some((option) => look(option, isInside));
      case "group":
        return look(node.body, isInside);
      case "repeat":
        return (isInside && node.max > 1) || look(node.body, isInside || node.max > 1);
    }
  };
  return look(parseRegex(source), false);
}

/** The structure of an expression. `source`: valid JavaScript without look-around and back references. */
export function parseRegex(source: string): Node {
  let at = 0;
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const found = pattern.exec(source);
    if (found !== null) at += found[0].length;
    return found;
  };
  const choice = (): Node => {
    const options = [sequence()];
    while (source[at] === "|") {
      at++;
      options.push(sequence());
    }
    return options.length === 1 ? options[0] : { kind: "choice", options };
  };
  const sequence = (): Node => {
    const items: Node[] = [];
    while (at < source.length && source[at] !== "|" && source[at] !== ")") items.push(repeated(single()));
    return { kind: "sequence", items };
  };
  const single = (): Node => {
    if (source[at] !== "(") return { kind: "atom", text: take(ATOM)![0] };
    const open = take(OPEN)![0];
    const body = choice();
    at++;
    return { kind: "group", open, body };
  };
  const repeated = (body: Node): Node => {
    const found = take(QUANTIFIER);
    if (found === null) return body;
    const [, sign, from, comma, to, lazy] = found;
    const min = sign === undefined ? Number(from) : sign === "+" ? 1 : 0;
    const isOpen = sign === undefined ? comma !== undefined && to === "" : sign !== "?";
    const max = isOpen ? Infinity : sign === "?" ? 1 : comma === undefined ? min : Number(to);
    return { kind: "repeat", body, min, max, lazy };
  };
  return choice();
}

class Writer {
  private atoms = 0;

  constructor(private readonly factorMax: number) {}

  /** `factor`: number of repetitions by the enclosing nodes. */
  write(node: Node, factor: number, keepsGroups: boolean): string {
    switch (node.kind) {
      case "atom":
        this.count();
        return node.text;
      case "sequence":
        return node.items.map((item) => this.write(item, factor, keepsGroups)).join("");
      case "choice":
        return node.options.map((option) => this.write(option, factor, keepsGroups)).join("|");
      case "group": {
        this.count();
        const open = keepsGroups || !isCapturing(node.open) ? node.open : "(?:";
        return `${open}${this.write(node.body, factor, keepsGroups)})`;
      }
      case "repeat":
        return this.repeat(node, factor, keepsGroups);
    }
  }

  private repeat(node: Node & { kind: "repeat" }, factor: number, keepsGroups: boolean): string {
    const { body, min, max, lazy } = node;
    const own = factor * Math.max(1, max === Infinity ? min + 1 : max);
    if (own <= this.factorMax) return this.write(body, own, keepsGroups) + quantifier(min, max) + lazy;
    if (keepsGroups && min !== max && hasGroups(body)) {
      throw new Unbounded(
        `a group that is repeated more than ${this.factorMax} times cannot be captured: use (?:…)`,
      );
    }
    // An empty iteration ends a repetition, but not its expansion: the match is the same, but groups may differ.
    if (keepsGroups && max > min && max < Infinity && canBeEmpty(body)) {
      throw new Unbounded(`an expression that can be empty cannot be repeated more than ${this.factorMax} times`);
    }
    const copy = (isLast = false) => this.write(body, factor, keepsGroups && isLast);
    let text = "";
    for (let k = 1; k <= min; k++) text += copy(k === max);
    if (max === Infinity) return `${text}${copy()}*${lazy}`;
    let more = "";
    for (let k = min; k < max; k++) more = `(?:${copy()}${more})?${lazy}`;
    return text + more;
  }

  private count(): void {
    if (++this.atoms > ATOMS_MAX) throw new Unbounded(`it repeats more than ${ATOMS_MAX} characters`);
  }
}

export const isCapturing = (open: string) => open === "(" || /^\(\?<\w/.test(open);

function hasGroups(node: Node): boolean {
  switch (node.kind) {
    case "atom":
      return false;
    case "sequence":
      return node.items.some(hasGroups);
    case "choice":
      return node.options.some(hasGroups);
    case "group":
      return isCapturing(node.open) || hasGroups(node.body);
    case "repeat":
      return hasGroups(node.body);
  }
}

export function canBeEmpty(node: Node): boolean {
  switch (node.kind) {
    case "atom":
      return /^(?:[\^$]|\\[bB])$/.test(node.text);
    case "sequence":
      return node.items.every(canBeEmpty);
    case "choice":
      return node.options.some(canBeEmpty);
    case "group":
      return canBeEmpty(node.body);
    case "repeat":
      return node.min === 0 || canBeEmpty(node.body);
  }
}

function quantifier(min: number, max: number): string {
  if (max === Infinity) return min === 0 ? "*" : min === 1 ? "+" : `{${min},}`;
  return min === 0 && max === 1 ? "?" : min === max ? `{${min}}` : `{${min},${max}}`;
}
