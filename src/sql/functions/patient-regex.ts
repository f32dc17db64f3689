/**
 * Regular expressions that V8 can run without backtracking. Its other engine takes over where backtracking gets out of hand, as
 * `(a+)+$` does over thirty letters (see the flag in the task `start`), but not for expressions with the flags u or i, and not for
 * properties and many repetitions. So all of that is written out. Look-around and back references, which it never takes, are
 * refused (`java-regex.ts`).
 */
import { SqlError, SQLSTATE } from "../../errors.ts";
import { hasNestedRepetitions, repetitionsWritten, Unbounded } from "./repetitions.ts";

export interface PatientRegex {
  test(text: string): boolean;
  /** Every match, in order: V8's own `replace` would list millions of them before it asks for the first one's replacement. */
  each(text: string, use: UseMatch): void;
}

/** A match and its groups, its place in the text, and its named groups. */
export type UseMatch = (found: Groups, index: number, names?: Names) => void;
export type Groups = readonly (string | undefined)[];
export type Names = Readonly<Record<string, string | undefined>>;

/** What the flag u reads in another way than the same expression without it, also over texts without surrogates. */
const UNICODE_ONLY = /\\u\{|\\u[dD][89a-fA-F]|[\ud800-\udfff]/;
const ASCII_ONLY = /^(?:(?!\\[upP])[\0-\x7f])*$/;
/** Of such an expression all characters beyond the basic plane are alike, and those of private use are as they are. */
const BELOW_SURROGATES = /^(?:(?!\\[upP])[\0-\ud7ff])*$/;
/** Letters beyond ASCII that the flags u and i together take for S and K. */
const LONG_S = "\u017f", KELVIN = "\u212a";
const KELVIN_OR_LONG_S = /[\u017f\u212a]/;
/** What tells these two from other letters, and is not written out. */
const WORDS = /\\[bBW]/;
const SURROGATE = /[\ud800-\udfff]/;

/**
 * `source` has no look-around and no back references; `flags` holds u. `keepsGroups`: for `each`, `test` is for the others.
 * @throws {SyntaxError | Unbounded}
 */
export function patientRegex(source: string, flags: string, keepsGroups: boolean): PatientRegex {
  const exact = new RegExp(source, keepsGroups ? `${flags}g` : flags);
  const isDangerous = hasNestedRepetitions(source);
  const exactly: PatientRegex = isDangerous
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

/** The same over texts without surrogates, if there is such an expression. */
function withoutUnicode(source: string, flags: string, keepsGroups: boolean): RegExp | undefined {
  if (UNICODE_ONLY.test(source)) return undefined;
  // Case is written out for ASCII only, and escapes may stand for letters.
  const ignoresCase = flags.includes("i");
  if (ignoresCase && (!ASCII_ONLY.test(source) || /\\x/.test(source))) return undefined;
  const written = ignoresCase ? casesWritten(source) : propertiesWritten(source);
  return new RegExp(repetitionsWritten(written, keepsGroups), flags.replace(/[ui]/g, "") + (keepsGroups ? "g" : ""));
}

/** What is left for backtracking must not repeat what is repeated. */
const DANGER =
  "repetitions of repetitions are supported for characters of the basic plane only, and with (?i) for ASCII only";

function refuseText(): never {
  throw new SqlError(`Cannot search a text for the pattern: ${DANGER}`, 0, SQLSTATE.featureNotSupported);
}

// Case

/** Names of groups and escapes stay as they are; letters, ranges of a class and single characters are what is left. */
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

/** Ranges for the letters between both in their other case. */
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

/** The characters of the basic plane that have the property, as the inside of a class. */
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

/** A text with a character of private use for each one beyond the basic plane, and the way back. */
interface StandIns {
  text: string;
  back(text: string): string;
}

const PRIVATE_FIRST = 0xe000, PRIVATE_LAST = 0xf8ff;

/** Undefined where there are not enough of them. */
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
