/** Functions shared by all grammar actions: from a node to its tokens. */
import type * as ohm from "ohm-js";
import { SqlError, SQLSTATE } from "../errors.ts";
import type { Expression, FunctionCall, Name, SelectItem } from "./ast.ts";
import type { Token } from "./lexer.ts";

export type Node = ohm.Node;

/** A statement's text and tokens, and the lists that the parser reads without the grammar. */
export interface TokenSource {
  readonly text: string;
  readonly tokens: Token[];
  items(open: number): { items: Expression[]; next: number };
  arrayItems(open: number): Expression[];
  pivotValues(open: number): SelectItem[];
  rows(open: number): { rows: Expression[][]; rowsAt: number[]; rowEnds: number[] };
}

/** The input of the grammar. `map` has the token index of each character. */
export interface Matched {
  readonly source: TokenSource;
  readonly map: number[];
}

/** Set while a tree is built. Lists of values are built recursively. */
export let matched: Matched;

/** Runs `build` over the nodes of one match. */
export function during<T>(of: Matched, build: () => T): T {
  const outer = matched;
  matched = of;
  try {
    return build();
  } finally {
    matched = outer;
  }
}

export function tokenIndex(node: Node): number {
  return matched.map[node.source.startIdx]!;
}
export function token(node: Node): Token {
  return matched.source.tokens[tokenIndex(node)]!;
}
export function at(node: Node): number {
  return token(node).at;
}
/** End of the last token of a non-empty node. */
export function endOf(node: Node): number {
  return matched.source.tokens[matched.map[node.source.endIdx]! - 1]!.end;
}
/** Position of the last token of a non-empty node. */
export function lastAt(node: Node): number {
  return matched.source.tokens[matched.map[node.source.endIdx]! - 1]!.at;
}
/** Position of the token after a non-empty node; undefined at the end of the statement. */
export function nextAt(node: Node): number | undefined {
  const { kind, at } = matched.source.tokens[matched.map[node.source.endIdx]!]!;
  return kind === "end" || kind === "semicolon" ? undefined : at;
}
export function written(node: Node): string {
  return matched.source.text.slice(at(node), endOf(node));
}
export function word(node: Node): string {
  return token(node).text.toLowerCase();
}
/** For a node with a keyword: its spelling if it is not in lower case. */
export function spelling({ text }: Token): { spelling?: string } {
  return text === text.toLowerCase() ? {} : { spelling: text };
}
export function optional<T>(node: Node): T | undefined {
  return node.numChildren === 0 ? undefined : node.child(0).tree();
}
export function given(node: Node): boolean {
  return node.numChildren > 0;
}
export function many<T>(node: Node): T[] {
  return node.children.map((child) => child.tree());
}
/** `first ("," rest)*` */
export function list<T>(first: Node, rest: Node): T[] {
  return rest.numChildren === 0 ? [first.tree()] : [first.tree(), ...many<T>(rest)];
}
export function name(node: Node): Name {
  const { text, at, kind } = token(node);
  return { text, at, quoted: kind !== "word" };
}
/** Words that the grammar accepts as names, but that need quotes when a new name is given. */
const RESERVED = new Set(
  ("add align alter asc attach batch bypass cancel cast column create desc detach drop exists explain insert " +
    "into lock outer partition rename resume sample set squash to update upsert values within").split(" "),
);

/** A name given to something new. @throws if it is one of these words without quotes. */
export function newName(given: Name): Name {
  if (given.quoted || !RESERVED.has(given.text.toLowerCase())) return given;
  throw new SqlError(
    `${given.text} is a reserved word: to use it as a name, put it in double quotes`,
    given.at,
    SQLSTATE.syntax,
  );
}

export function wholeNumber(node: Node): number {
  const { text, at } = token(node);
  const value = Number(text.replaceAll("_", ""));
  if (!Number.isSafeInteger(value)) throw new SqlError(`Expected a whole number, found ${text}`, at);
  return value;
}

export interface Path {
  schema?: Name;
  name: Name;
}

export function call(path: Name[], args: Expression[], more: Partial<FunctionCall> = {}): FunctionCall {
  const called: FunctionCall = {
    kind: "call",
    at: path[0]!.at,
    name: path.at(-1)!.text,
    args,
    distinct: false,
    ignoreNulls: false,
    ...more,
  };
  if (path.length > 1) called.schema = path.slice(0, -1).map((part) => part.text).join(".");
  return called;
}
