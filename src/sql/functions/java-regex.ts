/**
 * Translates regular expressions from Java's syntax to JavaScript's. Features without a counterpart (possessive quantifiers, atomic
 * groups, class intersections, \G) are refused, and so are patterns that could block a thread indefinitely (`linear-regex.ts`).
 * @see https://docs.oracle.com/en/java/javase/17/docs/api/java.base/java/util/regex/Pattern.html
 */

import { type Groups, linearRegex, type Names } from "./linear-regex.ts";
import { PATTERN_UNITS_MAX } from "./sizes.ts";

export type Translated = { source: string; flags: string } | {
  problem: string; /** Offset in the pattern. */
  offset: number;
};

/** POSIX and java.lang.Character classes, as the contents of a class. */
const CLASSES: Record<string, string> = {
  Lower: "a-z",
  Upper: "A-Z",
  ASCII: "\\x00-\\x7F",
  Alpha: "a-zA-Z",
  Digit: "0-9",
  Alnum: "a-zA-Z0-9",
  Punct: "!-\\/:-@\\[-`{-~",
  Graph: "!-~",
  Print: " -~",
  Blank: " \\t",
  Cntrl: "\\x00-\\x1F\\x7F",
  XDigit: "0-9a-fA-F",
  Space: " \\t\\n\\x0B\\f\\r",
};

class Refusal extends Error {
  constructor(message: string, readonly offset: number) {
    super(message);
  }
}

/**
 * @param keepsGroups whether a replacement uses the groups.
 */
export function translateRegex(pattern: string, keepsGroups: boolean): Translated {
  if (pattern.length > PATTERN_UNITS_MAX) {
    return { problem: `it has ${pattern.length} characters, at most ${PATTERN_UNITS_MAX} are allowed`, offset: 0 };
  }
  try {
    const { source, flags } = translate(pattern);
    try {
      linearRegex(source, flags, keepsGroups);
    } catch (error) {
      const { message } = error as Error;
      return { problem: error instanceof SyntaxError ? message.replace(/^.*: /, "") : message, offset: 0 };
    }
    return { source, flags };
  } catch (error) {
    if (error instanceof Refusal) return { problem: error.message, offset: error.offset };
    throw error;
  }
}

function translate(pattern: string): { source: string; flags: string } {
  let flags = "u";
  let at = 0;
  const leading = /^\(\?([imsuUdx]+)\)/.exec(pattern);
  let comments = false;
  if (leading !== null) {
    for (const flag of leading[1]) {
      if (flag === "x") comments = true;
      else if ("ims".includes(flag) && !flags.includes(flag)) flags += flag;
    }
    at = leading[0].length;
  }
  if (comments) throw new Refusal("the flag x is not supported", 2);
  let source = "";
  let depth = 0;
  while (at < pattern.length) {
    const character = pattern[at];
    if (character === "\\") {
      const [text, next] = escape(pattern, at, false);
      source += text;
      at = next;
    } else if (character === "[") {
      const [text, next] = characterClass(pattern, at);
      source += text;
      at = next;
    } else if (character === "(") {
      depth++;
      if (pattern.startsWith("(?>", at)) throw new Refusal("atomic groups are not supported", at);
      const inline = /^\(\?[a-zA-Z]*(?:-[a-zA-Z]+)?\)/.exec(pattern.slice(at));
      if (inline !== null) throw new Refusal("flags are supported only at the start", at);
      if (/^\(\?\w*i\w*[-:]/.test(pattern.slice(at))) throw new Refusal("flags are supported only at the start", at);
      if (/^\(\?<?[=!]/.test(pattern.slice(at, at + 4))) {
        throw new Refusal("look-around is not supported, because a search with it may not end", at);
      }
      source += character;
      at++;
      if (pattern[at] === "?") {
        source += "?";
        at++;
      }
    } else if (character === ")") {
      if (depth-- === 0) throw new Refusal("a closing parenthesis has no opening parenthesis", Math.max(0, at - 1));
      source += character;
      at++;
    } else if ("*+?}".includes(character) && pattern[at + 1] === "+") {
      throw new Refusal("possessive quantifiers are not supported", at);
    } else if (character === "{" && !/^\{\d+(,\d*)?\}/.test(pattern.slice(at))) {
      throw new Refusal("a repetition is malformed", at);
    } else if (character === "}" && !/\{\d+(,\d*)?\}$/.test(pattern.slice(0, at + 1))) {
      source += "\\}";
      at++;
    } else if (character === "]") {
      source += "\\]";
      at++;
    } else {
      source += character;
      at++;
    }
  }
  if (depth > 0) throw new Refusal("a group is not closed", pattern.length);
  return { source, flags };
}

/** Translates a backslash at `at`. Returns the translation and the index after it. */
function escape(pattern: string, at: number, inClass: boolean): [source: string, next: number] {
  const character = pattern[at + 1];
  if (character === undefined) throw new Refusal("the pattern ends with a backslash", pattern.length);
  if (character === "Q") {
    const end = pattern.indexOf("\\E", at + 2);
    const text = pattern.slice(at + 2, end < 0 ? pattern.length : end);
    return [
      text.replace(/[\\^$.|?*+()[\]{}/\-]/g, (found) => (found === "-" && !inClass ? "-" : `\\${found}`)),
      end < 0 ? pattern.length : end + 2,
    ];
  }
  if ("dDwWsStnrfvbB".includes(character)) return [`\\${character === "v" ? "x0B" : character}`, at + 2];
  if (/[1-9k]/.test(character) && !inClass) {
    throw new Refusal("back references are not supported, because a search with them may not end", at);
  }
  switch (character) {
    case "a":
      return ["\\x07", at + 2];
    case "e":
      return ["\\x1B", at + 2];
    case "h":
      return [inClass ? " \\t\\xA0" : "[ \\t\\xA0]", at + 2];
    case "R":
      return ["(?:\\r\\n|[\\n\\x0B\\f\\r\\x85\\u2028\\u2029])", at + 2];
    case "A":
      return ["(?-m:^)", at + 2];
    case "z":
      return ["(?-m:$)", at + 2];
    case "Z":
      throw new Refusal("\\Z is not supported: use \\z", at);
    case "0": {
      const octal = /^[0-3]?[0-7]{1,2}/.exec(pattern.slice(at + 2));
      if (octal === null) throw new Refusal("an octal escape has no digits", at);
      return [`\\x${parseInt(octal[0], 8).toString(16).padStart(2, "0")}`, at + 2 + octal[0].length];
    }
    case "x": {
      const hex = /^(?:[0-9a-fA-F]{2}|\{[0-9a-fA-F]+\})/.exec(pattern.slice(at + 2));
      if (hex === null) throw new Refusal("a hexadecimal escape is malformed", at);
      return [hex[0].startsWith("{") ? `\\u${hex[0]}` : `\\x${hex[0]}`, at + 2 + hex[0].length];
    }
    case "u": {
      if (!/^[0-9a-fA-F]{4}/.test(pattern.slice(at + 2))) throw new Refusal("a Unicode escape is malformed", at);
      return [pattern.slice(at, at + 6), at + 6];
    }
    case "p":
    case "P": {
      const named = /^(?:\{(\^?)(\w+)(?:=(\w+))?\}|(\w))/.exec(pattern.slice(at + 2));
      if (named === null) throw new Refusal("a property is malformed", at);
      const name = named[4] ?? named[2];
      const next = at + 2 + named[0].length;
      const inside = Object.hasOwn(CLASSES, name) ? CLASSES[name] : undefined;
      if (inside !== undefined) {
        if (inClass && character === "P") throw new Refusal(`\\P{${name}} inside a class is not supported`, at);
        return [inClass ? inside : `[${character === "P" ? "^" : ""}${inside}]`, next];
      }
      const property = named[3] !== undefined
        ? `${name}=${named[3]}`
        : name.startsWith("Is")
        ? name.slice(2)
        : name.startsWith("java") || name.startsWith("In")
        ? undefined
        : name;
      if (property === undefined) throw new Refusal(`the class ${name} is not supported`, at);
      return [`\\${character}{${property}}`, next];
    }
  }
  if (/[A-Za-z]/.test(character)) throw new Refusal(`\\${character} is not supported`, at);
  return [
    /[\\^$.|?*+()[\]{}/\-]/.test(character) && (inClass || character !== "-") ? `\\${character}` : character,
    at + 2,
  ];
}

/** Translates a class from its "[". Unions of nested classes are flattened, intersections refused. */
function characterClass(pattern: string, from: number): [source: string, next: number] {
  let source = "[";
  let at = from + 1;
  if (pattern[at] === "^") {
    source += "^";
    at++;
  }
  let isFirst = true;
  for (; at < pattern.length; isFirst = false) {
    const character = pattern[at];
    if (character === "]" && !isFirst) return [source + "]", at + 1];
    if (character === "[") {
      const [inner, next] = characterClass(pattern, at);
      if (inner.startsWith("[^")) throw new Refusal("a negated class inside a class is not supported", at);
      source += inner.slice(1, -1);
      at = next;
    } else if (pattern.startsWith("&&", at)) {
      throw new Refusal("intersections of classes are not supported", at);
    } else if (character === "\\") {
      const [text, next] = escape(pattern, at, true);
      source += text === "\\b" ? "\\x08" : text;
      at = next;
    } else {
      source += /[\](){}|/^$.*+?]/.test(character) ? `\\${character}` : character;
      at++;
    }
  }
  throw new Refusal("a class is not closed", from);
}

/** A text, the number of a group, or its name. */
export type ReplacementPart = string | number | { name: string };

/** Reads Java's replacement syntax: `$1`, `${name}`, backslashes. */
export function replacementParts(replacement: string): ReplacementPart[] {
  const parts: ReplacementPart[] = [];
  for (let at = 0; at < replacement.length;) {
    const rest = replacement.slice(at);
    const group = /^\$(\d)/.exec(rest), named = /^\$\{([A-Za-z][A-Za-z0-9]*)\}/.exec(rest);
    if (rest[0] === "\\" && rest.length > 1) {
      parts.push(rest[1]);
      at += 2;
    } else if (group !== null) {
      parts.push(Number(group[1]));
      at += group[0].length;
    } else if (named !== null) {
      parts.push({ name: named[1] });
      at += named[0].length;
    } else {
      parts.push(rest[0]);
      at++;
    }
  }
  return parts;
}

export type Replacement = (found: Groups, names: Names | undefined) => string;

/** A function of a match. */
export function translateReplacement(replacement: string): Replacement {
  const parts = replacementParts(replacement), [part, ...others] = parts;
  if (typeof part === "number" && others.length === 0) return (found) => found[part] ?? "";
  return (found, names) =>
    parts.map((
      part,
    ) => (typeof part === "string" ? part : typeof part === "number" ? found[part] ?? "" : names?.[part.name] ?? ""))
      .join("");
}
