/**
 * Kernels that replace the matches of simple regular expressions in the bytes of texts. Decoding a text, a match by V8 and encoding the result take
 * 200 to 400 ns.
 *
 * An expression is simple if a matcher without loops of choices finds what V8 finds:
 *
 *     characters, classes of ASCII characters and their complements, the dot, \d \w \s and their complements
 *     *, + and {n,} of one character, if what follows cannot begin with it: then only the longest repetition can match
 *     ? of anything, and alternatives: tried in their order
 *     groups, ^ at the start, $ at the end
 *
 * A kernel leaves a text to JavaScript if it is long, or if a class depends on which character beyond ASCII it is.
 * Without ^, repetitions must be at the end. So the attempts at all positions of a text take linear time.
 */
import { type Code, type Label, Module, sharedMemory } from "../../wasm/assembler.ts";
import type { ReplacementPart } from "./java-regex.ts";
import { canBeEmpty, isCapturing, type Node, parseRegex } from "./repetitions.ts";

/** Longer texts are left to JavaScript, which looks more often at whether the query is cancelled. */
export const TEXT_BYTES_MAX = 1_024;
/** Of a result. */
export const RESULT_BYTES_MAX = 4_096;
/** Attempts double with each choice. */
const CHOICES_MAX = 4;
const ATOMS_MAX = 64;
const GROUPS_MAX = 10;
/** Of the texts of the replacement. */
const LITERAL_BYTES_MAX = 1_024;

/** What `replace` reads and writes at `scratch`: the end of the results, then the ends of the match and of the groups, tables, texts. */
const RESULTS_END = 0, GROUPS = 8;
const TABLE_BYTES = 256, TABLES = GROUPS + 8 * GROUPS_MAX;

export interface ByteRegex {
  /**
   * Writes the results of the rows from … to-1 and their pairs. A result that is a part of its text is not written, others are from `at` to `limit`.
   * Returns `to`, or the row for which there is no space, or that is left to JavaScript.
   */
  replace(
    pairs: number,
    from: number,
    to: number,
    out: number,
    at: number,
    limit: number,
    scratch: number,
  ): number;
  /** To be copied to the scratch memory, which has a multiple of 8 as address. Its first word is where the results end. */
  scratch: Uint8Array;
}

/** The kernel of an expression and a replacement, if the expression is simple. `source`, `flags`: as of `translateRegex`. */
export function byteRegex(
  memory: WebAssembly.Memory,
  source: string,
  flags: string,
  replacement: readonly ReplacementPart[],
): ByteRegex | undefined {
  if (/[^us]/.test(flags)) return undefined;
  try {
    return new Compiler(memory, flags).compile(parseRegex(source), replacement);
  } catch (error) {
    if (error instanceof NotSimple) return undefined;
    throw error;
  }
}

class NotSimple extends Error {}

// Classes of characters

/** States of a byte, the first one of a character: whether the character is in a class. `UNSURE`: it depends on the bytes behind. */
const OUT = 0, IN = 1, UNSURE = 2;
type States = Uint8Array<ArrayBuffer>;

/** An escape of an ASCII character, or of ASCII characters. */
const ESCAPE = "\\\\(?:[dwnrtf]|x[0-7][0-9a-fA-F]|[^a-zA-Z0-9\\x80-\\uffff])";
const ASCII_ATOM = new RegExp(`^(?:[^\\\\^$.[\\x80-\\uffff]|${ESCAPE})$`);
const ASCII_CLASS = new RegExp(`^\\[(\\^?)(?:[^\\\\\\]\\x80-\\uffff]|${ESCAPE})*\\]$`);
/** The first byte of U+2028 and U+2029, which the dot does not match. */
const LINE_END_LEAD = 0xe2;

/** The state of characters beyond ASCII for an atom. */
function stateBeyond(text: string): number {
  if (text === "." || text === "\\D" || text === "\\W") return IN;
  if (text === "\\s" || text === "\\S") return UNSURE;
  const list = ASCII_CLASS.exec(text);
  if (list !== null) return list[1] === "^" ? IN : OUT;
  if (ASCII_ATOM.test(text)) return OUT;
  throw new NotSimple();
}

function statesOf(text: string, flags: string): States {
  const beyond = stateBeyond(text), regex = new RegExp(`^${text}$`, flags), states = new Uint8Array(TABLE_BYTES);
  for (let code = 0; code < 0x80; code++) states[code] = regex.test(String.fromCharCode(code)) ? IN : OUT;
  states.fill(beyond, 0x80);
  if (text === "." && !flags.includes("s")) states[LINE_END_LEAD] = UNSURE;
  return states;
}

/** Bytes with which a character may begin. */
const startsOf = (states: States): States => states.map((state, byte) => state === OUT || isContinued(byte) ? 0 : 1);
const isContinued = (byte: number) => byte >= 0x80 && byte < 0xc0;
const isOneByte = (states: States) => states.reduce((sum, state) => sum + state, 0) === IN;
const encoder = new TextEncoder();

// Expressions

/** What is left of an expression from a place in it on. */
interface Rest {
  /** Bytes with which it can begin. */
  first: States;
  canBeEmpty: boolean;
  /** It matches at any place. */
  always: boolean;
  /** Emits code that returns the end of the match, or why there is none. */
  emit(match: Match): void;
}

/** What a function of a rest returns instead of the end of a match. */
const FAILS = -1, LEFT = -2;

/** The function of a rest that is being emitted: (at, end, scratch) → the end of the match. */
class Match {
  readonly at = 0;
  readonly end = 1;
  readonly scratch = 2;
  private readonly byte: number;
  private readonly state: number;
  private readonly start: number;

  constructor(readonly code: Code) {
    [this.byte, this.state, this.start] = [code.local("i32"), code.local("i32"), code.local("i32")];
  }

  returns(value: number): void {
    this.code.i32(value).return();
  }

  isAtEnd(): Code {
    return this.code.get(this.at).get(this.end).op("i32.ge_u");
  }

  advance(count: number): void {
    this.code.get(this.at).i32(count).op("i32.add").set(this.at);
  }

  /** Compares bytes, and moves behind them. */
  literal(bytes: Uint8Array): void {
    const { code, at, end } = this, view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    code.get(end).get(at).op("i32.sub").i32(bytes.length).op("i32.lt_u").if(() => this.returns(FAILS));
    for (let k = 0; k < bytes.length;) {
      const left = bytes.length - k;
      if (left >= 8) {
        code.get(at).memory("i64.load", k).i64(view.getBigInt64(k, true)).op("i64.ne").if(() => this.returns(FAILS));
        k += 8;
      } else if (left >= 4) {
        code.get(at).memory("i32.load", k).i32(view.getInt32(k, true)).op("i32.ne").if(() => this.returns(FAILS));
        k += 4;
      } else {
        code.get(at).memory("i32.load8_u", k).i32(bytes[k]!).op("i32.ne").if(() => this.returns(FAILS));
        k++;
      }
    }
    this.advance(bytes.length);
  }

  /** Sets the state of the present byte. */
  private look(states: States, table: number): void {
    const { code, at, byte, state, scratch } = this;
    code.get(at).memory("i32.load8_u").set(byte);
    if (isOneByte(states)) code.get(byte).i32(states.indexOf(IN)).op("i32.eq").set(state);
    else code.get(scratch).get(byte).op("i32.add").memory("i32.load8_u", table).set(state);
    if (states.includes(UNSURE)) code.get(state).i32(UNSURE).op("i32.eq").if(() => this.returns(LEFT));
  }

  /** Moves behind a character. */
  private skip(states: States): void {
    const { code, at } = this;
    this.advance(1);
    if (states[0xc3] !== IN) return;
    code.block((done) =>
      code.loop((again) => {
        this.isAtEnd().brIf(done);
        code.get(at).memory("i32.load8_u").i32(0xc0).op("i32.and").i32(0x80).op("i32.ne").brIf(done);
        this.advance(1);
        code.br(again);
      })
    );
  }

  once(states: States, table: number): void {
    this.isAtEnd().if(() => this.returns(FAILS));
    this.look(states, table);
    this.code.get(this.state).op("i32.eqz").if(() => this.returns(FAILS));
    this.skip(states);
  }

  atMostOnce(states: States, table: number): void {
    this.isAtEnd().op("i32.eqz").if(() => {
      this.look(states, table);
      this.code.get(this.state).if(() => this.skip(states));
    });
  }

  /** Moves behind as many characters as there are. */
  all(states: States, table: number, atLeastOne: boolean): void {
    const { code, at, end, start, state } = this;
    code.get(at).set(start);
    code.block((done) => {
      const others = [...states.keys()].filter((byte) => states[byte] !== IN && !isContinued(byte));
      if (others.length === 0) code.get(end).set(at);
      else if (others.length <= 3) this.sixteens(others);
      code.loop((again) => {
        this.isAtEnd().brIf(done);
        this.look(states, table);
        code.get(state).op("i32.eqz").brIf(done);
        this.advance(1);
        code.br(again);
      });
    });
    if (atLeastOne) code.get(at).get(start).op("i32.eq").if(() => this.returns(FAILS));
  }

  /** Moves on in steps of 16 bytes, up to one of a few. */
  private sixteens(others: readonly number[]): void {
    const { code, at, end, state } = this, bytes = code.local("v128");
    code.block((found) =>
      code.loop((again) => {
        code.get(end).get(at).op("i32.sub").i32(16).op("i32.lt_u").brIf(found);
        code.get(at).memory("v128.load").set(bytes);
        others.forEach((byte, k) => {
          code.get(bytes).splat8(byte).op("i8x16.eq");
          if (k > 0) code.op("v128.or");
        });
        code.op("i8x16.bitmask").tee(state).if(() => {
          code.get(at).get(state).op("i32.ctz").op("i32.add").set(at).br(found);
        });
        this.advance(16);
        code.br(again);
      })
    );
  }
}

/** The end of an expression. */
const anywhere: Rest = {
  first: new Uint8Array(TABLE_BYTES),
  canBeEmpty: true,
  always: true,
  emit: ({ code, at }) => code.get(at),
};
/** `$` at the end of an expression. */
const atEnd: Rest = {
  ...anywhere,
  always: false,
  emit: (match) => match.code.get(match.at).i32(FAILS).get(match.at).get(match.end).op("i32.eq").op("select"),
};

const both = (a: States, b: States): States => a.map((has, byte) => has | b[byte]!);
const haveCommon = (a: States, b: States): boolean => a.some((has, byte) => has !== 0 && b[byte] !== 0);

class Compiler {
  private readonly module: Module;
  /** The names of the groups, or "". */
  private readonly groups: string[] = [];
  private readonly numbers = new Map<Node, number>();
  private readonly tables: States[] = [];
  private isAnchored = false;
  private choices = 0;
  private atoms = 0;
  private readonly literals = new WeakMap<Rest, { bytes: Uint8Array; next: Rest }>();
  private readonly functions = new Map<Rest, number>();

  constructor(private readonly memory: WebAssembly.Memory, private readonly flags: string) {
    this.module = new Module([sharedMemory(memory)]);
  }

  compile(node: Node, replacement: readonly ReplacementPart[]): ByteRegex {
    const items = node.kind === "sequence" ? [...node.items] : [node];
    const isAtom = (item: Node | undefined, text: string) => item?.kind === "atom" && item.text === text;
    this.isAnchored = isAtom(items[0], "^");
    if (this.isAnchored) items.shift();
    const isToEnd = isAtom(items.at(-1), "$");
    if (isToEnd) items.pop();
    const inner: Node = { kind: "sequence", items };
    this.number(inner);
    if (this.groups.length >= GROUPS_MAX) throw new NotSimple();
    const whole = this.before(inner, isToEnd ? atEnd : anywhere);
    const first = whole.canBeEmpty ? undefined : this.tableOf(whole.first);
    const parts: Part[] = [], texts: number[] = [];
    for (const part of replacement) {
      const group = typeof part === "number"
        ? part
        : typeof part === "string"
        ? -1
        : this.groups.indexOf(part.name) + 1;
      if (typeof part === "string") {
        const bytes = encoder.encode(part);
        parts.push({ at: TABLES + TABLE_BYTES * this.tables.length + texts.length, length: bytes.length });
        texts.push(...bytes);
      } else if (group <= this.groups.length && (typeof part === "number" || group > 0)) parts.push({ group });
    }
    if (texts.length > LITERAL_BYTES_MAX) throw new NotSimple();
    const match = this.functionOf(whole);
    addReplace(this.module, { match, parts, first, groupCount: this.groups.length, isAnchored: this.isAnchored });
    const scratch = new Uint8Array(TABLES + TABLE_BYTES * this.tables.length + texts.length);
    this.tables.forEach((states, k) => scratch.set(states, TABLES + TABLE_BYTES * k));
    scratch.set(texts, scratch.length - texts.length);
    const module = new WebAssembly.Module(this.module.finish());
    const { exports } = new WebAssembly.Instance(module, { env: { memory: this.memory } });
    return { replace: exports.replace as ByteRegex["replace"], scratch };
  }

  /** Gives groups their numbers, in the order of their parentheses. */
  private number(node: Node): void {
    switch (node.kind) {
      case "atom":
        if (++this.atoms > ATOMS_MAX) throw new NotSimple();
        break;
      case "sequence":
        for (const item of node.items) this.number(item);
        break;
      case "choice":
        for (const option of node.options) this.number(option);
        break;
      case "group":
        if (isCapturing(node.open)) this.numbers.set(node, this.groups.push(/<(.*)>/.exec(node.open)?.[1] ?? ""));
        else if (node.open !== "(?:") throw new NotSimple();
        this.number(node.body);
        break;
      case "repeat":
        this.number(node.body);
    }
  }

  /** The node, then `next`. */
  private before(node: Node, next: Rest): Rest {
    switch (node.kind) {
      case "atom":
        return this.atom(node.text, next);
      case "sequence":
        return node.items.reduceRight((rest, item) => this.before(item, rest), next);
      case "group": {
        const group = this.numbers.get(node), at = GROUPS + 8 * (group ?? 0);
        return group === undefined
          ? this.before(node.body, next)
          : saving(at, this.before(node.body, saving(at + 4, next)));
      }
      case "choice":
        return this.choice(node.options, next);
      case "repeat":
        return this.repeat(node, next);
    }
  }

  private atom(text: string, next: Rest): Rest {
    if (/^[\x80-\u{10ffff}]$/u.test(text)) return this.literal(encoder.encode(text), next);
    const states = statesOf(text, this.flags);
    if (isOneByte(states)) return this.literal(Uint8Array.of(states.indexOf(IN)), next);
    const table = this.tableOf(states);
    return {
      first: startsOf(states),
      canBeEmpty: false,
      always: false,
      emit: (match) => {
        match.once(states, table);
        next.emit(match);
      },
    };
  }

  private literal(bytes: Uint8Array, next: Rest): Rest {
    const more = this.literals.get(next);
    if (more !== undefined) return this.literal(Uint8Array.of(...bytes, ...more.bytes), more.next);
    const first = new Uint8Array(TABLE_BYTES);
    first[bytes[0]!] = IN;
    const rest: Rest = {
      first,
      canBeEmpty: false,
      always: false,
      emit: (match) => {
        match.literal(bytes);
        next.emit(match);
      },
    };
    this.literals.set(rest, { bytes, next });
    return rest;
  }

  private repeat({ body, min, max, lazy }: Node & { kind: "repeat" }, next: Rest): Rest {
    if (lazy !== "" || max !== min && max !== 1 && max !== Infinity) throw new NotSimple();
    if (min > 1) {
      // Groups would be of the last repetition.
      if (body.kind !== "atom" || min > ATOMS_MAX || (this.atoms += min) > ATOMS_MAX) throw new NotSimple();
      const others = max === Infinity ? this.repeat({ kind: "repeat", body, min: 0, max, lazy }, next) : next;
      return Array.from({ length: min }, () => body).reduceRight((rest, atom) => this.before(atom, rest), others);
    }
    if (max === min) return min === 0 ? next : this.before(body, next);
    const states = body.kind === "atom" && !/^[\x80-\u{10ffff}]$/u.test(body.text)
      ? statesOf(body.text, this.flags)
      : undefined;
    const isSure = states !== undefined && !haveCommon(startsOf(states), next.first);
    // An empty repetition does not count, so another option of it is looked for.
    if (max === 1 && canBeEmpty(body)) throw new NotSimple();
    if (max === 1 && !isSure) return this.choice([body, { kind: "sequence", items: [] }], next);
    // What follows cannot begin within a repetition, so no shorter one can match.
    if (!isSure || max === Infinity && !this.isAnchored && !next.always) throw new NotSimple();
    const table = this.tableOf(states);
    return {
      first: min === 0 ? both(startsOf(states), next.first) : startsOf(states),
      canBeEmpty: min === 0 && next.canBeEmpty,
      always: min === 0 && next.always,
      emit: (match) => {
        if (max === 1) match.atMostOnce(states, table);
        else match.all(states, table, min === 1);
        next.emit(match);
      },
    };
  }

  /** Each option is tried with what follows. */
  private choice(options: readonly Node[], next: Rest): Rest {
    this.choices += options.length - 1;
    if (this.choices > CHOICES_MAX) throw new NotSimple();
    const rests = options.map((option) => this.before(option, next));
    const cleared = options.map((option) => this.groupsIn(option));
    return {
      first: rests.map(({ first }) => first).reduce(both),
      canBeEmpty: rests.some(({ canBeEmpty }) => canBeEmpty),
      always: rests.some(({ always }) => always),
      emit: (match) => {
        const { code, at, end, scratch } = match, found = code.local("i32");
        rests.forEach((rest, k) => {
          code.get(at).get(end).get(scratch).call(this.functionOf(rest));
          if (k === rests.length - 1) return;
          code.tee(found).i32(FAILS).op("i32.ne").if(() => code.get(found).return());
          for (const group of cleared[k]!) code.get(scratch).i64(0n).memory("i64.store", GROUPS + 8 * group);
        });
      },
    };
  }

  private groupsIn(node: Node): number[] {
    switch (node.kind) {
      case "atom":
        return [];
      case "sequence":
        return node.items.flatMap((item) => this.groupsIn(item));
      case "choice":
        return node.options.flatMap((option) => this.groupsIn(option));
      case "group":
        return [this.numbers.get(node) ?? [], this.groupsIn(node.body)].flat();
      case "repeat":
        return this.groupsIn(node.body);
    }
  }

  private functionOf(rest: Rest): number {
    let known = this.functions.get(rest);
    if (known === undefined) {
      const { code, index } = this.module.function(["i32", "i32", "i32"], ["i32"]);
      this.functions.set(rest, known = index);
      rest.emit(new Match(code));
    }
    return known;
  }

  /** The place of a table in the scratch memory. */
  private tableOf(states: States): number {
    return TABLES + TABLE_BYTES * (this.tables.push(states) - 1);
  }
}

/** Stores the present place at an address of the scratch memory. */
const saving = (address: number, next: Rest): Rest => ({
  ...next,
  emit: (match) => {
    match.code.get(match.scratch).get(match.at).memory("i32.store", address);
    next.emit(match);
  },
});

// Replacements

/** A text in the scratch memory, or a group, of which 0 is the match. */
type Part = { at: number; length: number } | { group: number };

interface Replacing {
  match: number;
  parts: readonly Part[];
  /** The table of the bytes with which a match begins, if it cannot be empty. */
  first: number | undefined;
  groupCount: number;
  isAnchored: boolean;
}

function addReplace(module: Module, { match, parts, first, groupCount, isAnchored }: Replacing): void {
  const copy = copyFunction(module);
  const { code } = module.function(["i32", "i32", "i32", "i32", "i32", "i32", "i32"], ["i32"], "replace");
  const [pairs, row, to, out, at, limit, scratch] = [0, 1, 2, 3, 4, 5, 6] as const;
  const text = code.local("i32"), end = code.local("i32"), place = code.local("i32"), found = code.local("i32");
  // Up to where the text is written, and where its result ends; 0 if nothing is.
  const taken = code.local("i32"), put = code.local("i32");
  const leave = () => code.get(scratch).get(at).memory("i32.store", RESULTS_END).get(row);
  const stop = () => leave().return();
  const pair = (address: () => void, length: () => void) => {
    code.get(out);
    address();
    code.memory("i32.store").get(out);
    length();
    code.memory("i32.store", 4);
  };
  const groupEnd = (group: number, isEnd: boolean) =>
    code.get(scratch).memory("i32.load", GROUPS + 8 * group + (isEnd ? 4 : 0));
  /** Appends bytes to the result. */
  const append = (from: () => void, length: () => void) => {
    from();
    length();
    code.tee(found).get(put).call(copy);
    code.get(put).get(found).op("i32.add").set(put);
  };
  const fits = (length: () => void) => {
    code.get(put).get(at).op("i32.sub");
    length();
    code.op("i32.add").i32(RESULT_BYTES_MAX).op("i32.gt_u").if(stop);
  };
  const between = (from: number, to: number) => () => code.get(to).get(from).op("i32.sub");
  const [only] = parts, isGroup = parts.length === 1 && only !== undefined && "group" in only;
  /** Appends what replaces the match from `place`, whose end is in the scratch memory. */
  const replaced = () => {
    for (const part of parts) {
      const length = () =>
        "group" in part
          ? groupEnd(part.group, true).get(scratch).memory("i32.load", GROUPS + 8 * part.group).op("i32.sub")
          : code.i32(part.length);
      fits(length);
      append(
        () => "group" in part ? groupEnd(part.group, false) : code.get(scratch).i32(part.at).op("i32.add"),
        length,
      );
    }
  };
  const begin = () =>
    code.get(put).op("i32.eqz").if(() => {
      code.get(limit).get(at).op("i32.sub").i32(RESULT_BYTES_MAX).op("i32.lt_u").if(stop);
      code.get(at).set(put);
    });
  const attempt = () => {
    for (let group = 1; group <= groupCount; group++) {
      code.get(scratch).i64(0n).memory("i64.store", GROUPS + 8 * group);
    }
    code.get(place).get(end).get(scratch).call(match).tee(found).i32(LEFT).op("i32.eq").if(stop);
  };
  /** Calls `body` with the match in the scratch memory. */
  const ifFound = (body: () => void, otherwise: () => void) =>
    code.get(found).i32(FAILS).op("i32.ne").if(() => {
      code.get(scratch).get(place).memory("i32.store", GROUPS);
      code.get(scratch).get(found).memory("i32.store", GROUPS + 4);
      body();
    }, otherwise);
  const write = () => {
    begin();
    fits(between(taken, place));
    append(() => code.get(taken), between(taken, place));
    replaced();
    groupEnd(0, true).set(taken);
  };
  const finish = () => {
    code.get(put).if(() => {
      fits(between(taken, end));
      append(() => code.get(taken), between(taken, end));
      pair(() => code.get(at), between(at, put));
      code.get(put).set(at);
    }, () => pair(() => code.get(text), between(text, end)));
  };
  const next = () => {
    code.block((done) =>
      code.loop((again) => {
        code.get(place).i32(1).op("i32.add").tee(place).get(end).op("i32.ge_u").brIf(done);
        code.get(place).memory("i32.load8_u").i32(0xc0).op("i32.and").i32(0x80).op("i32.eq").brIf(again);
      })
    );
  };
  const anchored = (ready: Label) => {
    attempt();
    ifFound(() => {
      if (isGroup) {
        // The result is a part of the text.
        code.get(found).get(end).op("i32.eq").if(() => {
          pair(() => groupEnd(only.group, false), () => {
            groupEnd(only.group, true);
            groupEnd(only.group, false).op("i32.sub");
          });
          code.br(ready);
        });
      }
      write();
    }, () => {});
  };
  const everywhere = () =>
    code.block((done) =>
      code.loop((again) => {
        code.get(place).get(end).op(first === undefined ? "i32.gt_u" : "i32.ge_u").brIf(done);
        if (first !== undefined) {
          code.get(scratch).get(place).memory("i32.load8_u").op("i32.add").memory("i32.load8_u", first).op("i32.eqz");
          code.if(() => {
            code.get(place).i32(1).op("i32.add").set(place).br(again);
          });
        }
        attempt();
        ifFound(() => {
          write();
          // Behind an empty match, the next character is not looked at again.
          code.get(place).get(taken).op("i32.eq").if(next, () => code.get(taken).set(place));
        }, next);
        code.br(again);
      })
    );
  code.get(pairs).get(row).i32(3).op("i32.shl").op("i32.add").set(pairs);
  code.get(out).get(row).i32(3).op("i32.shl").op("i32.add").set(out);
  code.block((done) =>
    code.loop((again) => {
      code.get(row).get(to).op("i32.ge_u").brIf(done);
      code.get(pairs).memory("i32.load", 4).tee(end).i32(TEXT_BYTES_MAX).op("i32.gt_s").if(stop);
      code.block((ready) => {
        code.get(end).i32(0).op("i32.lt_s").if(() => {
          pair(() => code.i32(0), () => code.i32(-1));
          code.br(ready);
        });
        code.get(pairs).memory("i32.load").tee(text).get(end).op("i32.add").set(end);
        code.get(text).set(place).get(text).set(taken).i32(0).set(put);
        if (isAnchored) anchored(ready);
        else everywhere();
        finish();
      });
      code.get(pairs).i32(8).op("i32.add").set(pairs).get(out).i32(8).op("i32.add").set(out);
      code.get(row).i32(1).op("i32.add").set(row).br(again);
    })
  );
  leave();
}

/** (from, length, to): copies bytes, and none behind them. */
function copyFunction(module: Module): number {
  const { code, index } = module.function(["i32", "i32", "i32"], []);
  const [from, length, to] = [0, 1, 2] as const;
  const copy = (width: number, load: string, store: string) =>
    code.block((done) =>
      code.loop((again) => {
        code.get(length).i32(width).op("i32.lt_u").brIf(done);
        code.get(to).get(from).memory(load).memory(store);
        code.get(from).i32(width).op("i32.add").set(from).get(to).i32(width).op("i32.add").set(to);
        code.get(length).i32(width).op("i32.sub").set(length).br(again);
      })
    );
  copy(8, "i64.load", "i64.store");
  copy(1, "i32.load8_u", "i32.store8");
  return index;
}
