/**
 * Regular expressions that V8 can run without backtracking. Its other engine takes over where backtracking gets out of hand, as
 * `(a+)+$` does over thirty letters (see the flag in the task `start`), but not for expressions with the flags u or i, and not for
 * properties, look-around and back references.
 */
export interface PatientRegex {
  test(text: string): boolean;
  replace(text: string, by: (...found: unknown[]) => string): string;
}

/** What the flag u reads in another way than the same expression without it, also over texts without surrogates. */
const UNICODE_ONLY = /\\[pP]\{|\\u\{|\\u[dD][89a-fA-F]|[\ud800-\udfff]/;
/** Texts that may mean something else to an expression with the flag u … */
const SURROGATE = /[\ud800-\udfff]/;
/** … and to one with both flags, which takes two signs beyond ASCII for K and S. */
const SURROGATE_OR_LETTER = /[\ud800-\udfff\u017f\u212a]/;

/** `source` is valid with the flag u, which `flags` holds. */
export function patientRegex(source: string, flags: string): PatientRegex {
  const exact = new RegExp(source, flags);
  const quick = withoutUnicode(source, flags);
  const special = flags.includes("i") ? SURROGATE_OR_LETTER : SURROGATE;
  const of = (text: string) => quick === undefined || special.test(text) ? exact : quick;
  return {
    test: (text) => of(text).test(text),
    replace: (text, by) => text.replace(of(text), by),
  };
}

/** The same over texts without special letters, if there is such an expression. */
function withoutUnicode(source: string, flags: string): RegExp | undefined {
  if (UNICODE_ONLY.test(source)) return undefined;
  if (!flags.includes("i")) return new RegExp(source, flags.replace("u", ""));
  // Case is written out, for ASCII; back references would still tell it.
  return /^(?:(?!\\[uxk1-9])[\0-\x7f])*$/.test(source)
    ? new RegExp(bothCases(source), flags.replace(/[ui]/g, ""))
    : undefined;
}

/** Names of groups and escapes stay as they are; letters, ranges of a class and single characters are what is left. */
const PART = /\(\?<\w+>|\\.|\[\^?|\]|[^\]]-[^\]\\]|[^]/g;

function bothCases(source: string): string {
  let inClass = false;
  return source.replace(PART, (part) => {
    if (part[0] === "[") inClass = true;
    else if (part === "]") inClass = false;
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
  }
  return ranges;
}
