/** What all actions on the grammar's nodes share: the way from a node to its tokens. */
import type * as ohm from "ohm-js";
import { SqlError, SQLSTATE } from "../errors.ts";
import type { Expression, FunctionCall, Name } from "./ast.ts";
import type { Token } from "./lexer.ts";

export type Node = ohm.Node;

/** A statement's text and tokens, and the lists that the parser reads without the grammar. */
export interface TokenSource {
  readonly text: string;
  readonly tokens: Token[];
  items(open: number): { items: Expression[]; next: number };
  arrayItems(open: number): Expression[];
  rows(open: number): { rows: Expression[][]; rowsAt: number[] };
}

/** What the grammar is matched against. `map` gives the token index of each character. */
export interface Matched {
  readonly source: TokenSource;
  readonly map: number[];
}

/** Set while a tree is being built; lists of values build trees inside it. */
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
  return matched.map[node.source.startIdx];
}
export function token(node: Node): Token {
  return matched.source.tokens[tokenIndex(node)];
}
export function at(node: Node): number {
  return token(node).at;
}
/** The end of the last token of a node that is not empty. */
export function endOf(node: Node): number {
  return matched.source.tokens[matched.map[node.source.endIdx] - 1].end;
}
export function written(node: Node): string {
  return matched.source.text.slice(at(node), endOf(node));
}
export function word(node: Node): string {
  return token(node).text.toLowerCase();
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
/** Words that the grammar could take for names, but that the dialect wants in quotes where something gets its name. */
const RESERVED = new Set(
  ("add align alter asc attach batch bypass cancel cast column create desc detach drop exists explain insert " +
    "into lock outer partition rename resume sample set squash to update upsert values within").split(" "),
);

/** The name that something gets. @throws where it is a word of the dialect and not in quotes. */
export function newName(given: Name): Name {
  if (given.quoted || !RESERVED.has(given.text.toLowerCase())) return given;
  throw new SqlError(`${given.text} is a word of SQL: as a name it wants double quotes`, given.at, SQLSTATE.syntax);
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
    at: path[0].at,
    name: path.at(-1)!.text,
    args,
    distinct: false,
    ignoreNulls: false,
    ...more,
  };
  if (path.length > 1) called.schema = path.slice(0, -1).map((part) => part.text).join(".");
  return called;
}
