/**
 * Rewrites regular expressions so that V8 can run them without backtracking. V8's other engine takes over when backtracking explodes,
 * as for `(a+)+$` over thirty letters (see the flag in the task `start`), but it does not support the flags u and i, properties, and
 * many repetitions. So all of these are expanded. It never supports look-around and back references, which are refused
 * (`java-regex.ts`).
 */
import { SqlError, SQLSTATE } from "../../errors.ts";
import { hasNestedRepetitions, repetitionsWritten, Unbounded } from "./repetitions.ts";

export interface LinearRegex {
  test(text: string): boolean;
  /**
   * Visits every match in order. V8's own `replace` would list millions of matches before it calls the replacement
   * function.
   */
  each(text: string, use: UseMatch): void;
}

/** A match with its groups, its index in the text, and its named groups. */
export type UseMatch = (found: Groups, index: number, names?: Names) => void;
export type Groups = readonly (string | undefined)[];
export type Names = Readonly<Record<string, string | undefined>>;

/** Matches expressions whose meaning depends on the flag u even over texts without surrogates. */
const UNICODE_ONLY = /\\u\{|\\u[dD][89a-fA-F]|[\ud800-\udfff]/;
const ASCII_ONLY = /^(?:(?!\\[upP])[\0-\x7f])*$/;
/** Such an expression treats all characters beyond the basic plane alike, and private-use characters as themselves. */
const BELOW_SURROGATES = /^(?:(?!\\[upP])[\0-\ud7ff])*$/;
/** Non-ASCII letters that the flags u and i together match with S and K. */
const LONG_S = "\u017f", KELVIN = "\u212a";
const KELVIN_OR_LONG_S = /[\u017f\u212a]/;
/** These depend on whether the two letters are word characters, and are not expanded. */
const WORDS = /\\[bBW]/;
const SURROGATE = /[\ud800-\udfff]/;

/**
 * `source` has no look-around and no back references; `flags` includes u. `keepsGroups`: required for `each`; `test`
 * works without.
 * @throws {SyntaxError | Unbounded}
 */
export function linearRegex(source: string, flags: string, keepsGroups: boolean): LinearRegex {
  const exact = new RegExp(source, keepsGroups ? `${flags}g` : flags);
  const isDangerous = hasNestedRepetitions(source);
  const exactly: LinearRegex = isDangerous
    ? { test: refuseText, each: refuseText }
    : { test: (text) => exact.test(text), each: (text, use) => eachMatch(exact, text, use) };
  const quick = withoutUnicode(source, flags, keepsGroups);
  if (quick === undefined) {
    if (isDangerous) throw new Unbounded(DANGER);
    return exactly;
  }
  const ignoresCase = flags.includes("i");
  const takesStandIns = BELOW_SURROGATES.test(source);
  const doesNotFit = (text: string) => ignoresCase && WORDS.test(source) && KELVIN_OR_LONG_S.test(text);
  return {
    test(text) {
      if (doesNotFit(text)) return exactly.test(text);
      if (!SURROGATE.test(text)) return quick.test(text);
      const other = takesStandIns ? withStandIns(text) : undefined;
      return other === undefined ? exactly.test(text) : quick.test(other.text);
    },
    each(text, use) {
      if (doesNotFit(text)) return exactly.each(text, use);
      if (!SURROGATE.test(text)) return eachMatch(quick, text, use);
      const other = takesStandIns ? withStandIns(text) : undefined;
      if (other === undefined) exactly.each(text, use);
      else eachMatchOf(other, quick, use);
    },
  };
}

function eachMatch(regex: RegExp, text: string, use: UseMatch): void {
  regex.lastIndex = 0;
  for (let found = regex.exec(text); found !== null; found = regex.exec(text)) {
    use(found, found.index, found.groups);
    if (found[0] === "") regex.lastIndex += regex.unicode && (text.codePointAt(found.index) ?? 0) > 0xffff ? 2 : 1;
  }
}

/** An equivalent expression for texts without surrogates, if there is one. */
function withoutUnicode(source: string, flags: string, keepsGroups: boolean): RegExp | undefined {
  if (UNICODE_ONLY.test(source)) return undefined;
  // Case is expanded for ASCII only, and escapes may stand for letters.
  const ignoresCase = flags.includes("i");
  if (ignoresCase && (!ASCII_ONLY.test(source) || /\\x/.test(source))) return undefined;
  const written = ignoresCase ? casesWritten(source) : propertiesWritten(source);
  return new RegExp(repetitionsWritten(written, keepsGroups), flags.replace(/[ui]/g, "") + (keepsGroups ? "g" : ""));
}

/** Expressions that can only run with backtracking must not contain nested repetitions. */
const DANGER = "nested repetitions are supported only for characters of the basic plane, and with (?i) only for ASCII";

function refuseText(): never {
  throw new SqlError(`Cannot search a text for the pattern: ${DANGER}`, 0, SQLSTATE.featureNotSupported);
}

// Case

/** Names of groups and escapes stay unchanged; the rest are letters, ranges in classes and single characters. */
const PART = /\(\?(?:<\w+>|[a-z]*(?:-[a-z]+)?:)|\\.|\[\^?|\]|[^\]]-[^\]\\]|[^]/g;

function casesWritten(source: string): string {
  let inClass = false;
  return source.replace(PART, (part) => {
    if (part[0] === "[") inClass = true;
    else if (part === "]") inClass = false;
    else if (part === "\\w") return inClass ? part + LONG_S + KELVIN : `[${part}${LONG_S}${KELVIN}]`;
    else if (part.length === 3 && part[1] === "-" && inClass) return part + otherCase(part[0], part[2]);
    else if (part.length === 3 && part[1] === "-") return [...part].map((character) => either(character)).join("");
    else if (part.length === 1) return inClass ? part + otherCase(part, part) : either(part);
    return part;
  });
}

function either(letter: string): string {
  const other = otherCase(letter, letter);
  return other === "" ? letter : `[${letter}${other}]`;
}

/** The ranges of the other case for the letters between both ends. */
function otherCase(low: string, high: string): string {
  let ranges = "";
  for (const [first, last, shift] of [[65, 90, 32], [97, 122, -32]]) {
    const from = Math.max(first, low.charCodeAt(0)), to = Math.min(last, high.charCodeAt(0));
    if (from > to) continue;
    ranges += String.fromCharCode(from + shift) + (from < to ? `-${String.fromCharCode(to + shift)}` : "");
    for (const [letter, like] of [["s", LONG_S], ["k", KELVIN]]) {
      const code = letter.charCodeAt(0) - (shift > 0 ? 32 : 0);
      if (code >= from && code <= to) ranges += like;
    }
  }
  return ranges;
}

// Properties

const PROPERTY = /\\[pP]\{[^}]+\}|\\.|[[\]]/g;

function propertiesWritten(source: string): string {
  let inClass = false;
  return source.replace(PROPERTY, (part) => {
    if (part === "[") inClass = true;
    else if (part === "]") inClass = false;
    else if (/^\\[pP]\{/.test(part)) return inClass ? rangesOf(part) : `[${rangesOf(part)}]`;
    return part;
  });
}

const knownRanges = new Map<string, string>();

/** The characters of the basic plane with the property, as the contents of a class. */
function rangesOf(property: string): string {
  let ranges = knownRanges.get(property);
  if (ranges !== undefined) return ranges;
  const has = new RegExp(property, "u");
  const hex = (code: number) => `\\u${code.toString(16).padStart(4, "0")}`;
  ranges = "";
  for (let code = 0, from = -1; code <= 0x10000; code++) {
    const isIn = code < 0x10000 && has.test(String.fromCharCode(code));
    if (isIn && from < 0) from = code;
    if (isIn || from < 0) continue;
    ranges += `${hex(from)}-${hex(code - 1)}`;
    from = -1;
  }
  knownRanges.set(property, ranges);
  return ranges;
}

// Texts beyond the basic plane

/**
 * A text in which each character beyond the basic plane is replaced by a private-use character, and the inverse
 * function.
 */
interface StandIns {
  text: string;
  back(text: string): string;
}

const PRIVATE_FIRST = 0xe000, PRIVATE_LAST = 0xf8ff;

/** Undefined if there are too many different characters. */
function withStandIns(text: string): StandIns | undefined {
  const standIns = new Map<string, string>(), meant = new Map<string, string>();
  let next = PRIVATE_FIRST;
  const written = text.replace(/[\ud800-\udbff][\udc00-\udfff]/g, (pair) => {
    let standIn = standIns.get(pair);
    if (standIn !== undefined) return standIn;
    while (next <= PRIVATE_LAST && text.includes(String.fromCharCode(next))) next++;
    standIn = String.fromCharCode(next++);
    standIns.set(pair, standIn);
    meant.set(standIn, pair);
    return standIn;
  });
  if (next > PRIVATE_LAST || SURROGATE.test(written)) return undefined;
  return {
    text: written,
    back: (part) => part.replace(/[\ue000-\uf8ff]/g, (standIn) => meant.get(standIn) ?? standIn),
  };
}

function eachMatchOf({ text, back }: StandIns, regex: RegExp, use: UseMatch): void {
  let last = 0, offset = 0;
  const own = (group: string | undefined) => group === undefined ? undefined : back(group);
  eachMatch(regex, text, (found, index, names) => {
    offset += back(text.slice(last, index)).length;
    last = index;
    use(
      found.map(own),
      offset,
      names && Object.fromEntries(Object.entries(names).map(([k, group]) => [k, own(group)])),
    );
  });
}
