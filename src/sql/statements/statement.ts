/**
 * What a kind of statement is made of. Each kind is one file of this folder, listed in `mod.ts`: the grammar, the binder, the
 * session and the reference find it there. What storage does for it is a `Change` in `storage/contract.ts`.
 */
import type * as ohm from "ohm-js";
import type { Answer, Prepared } from "../../api.ts";
import type { PostedPlan } from "../../engine/contract.ts";
import type { Permission } from "../../requirement.ts";
import type { Change } from "../../storage/contract.ts";
import type { Statement } from "../ast.ts";
import type { Queries } from "../binder/query.ts";
import type { BoundStatement } from "../plan.ts";

/** `Tree`: the statement as written. `Bound`: the same with its names resolved and its plan. */
export interface StatementKind<
  Tree extends Statement = Statement,
  Bound extends BoundStatement<PostedPlan> = BoundStatement<PostedPlan>,
> {
  /** Names its trees and bound statements, and the rule of the grammar that reads it. */
  readonly kind: Tree["kind"] & Bound["kind"];
  readonly form: Form;
  readonly reference: Reference;
  readonly category: Prepared["category"];
  /** Permissions that it may require, besides SELECT on what its queries read. `bind` says which of them on what. */
  readonly requires: readonly Permission[];
  /** @throws {SqlError} for whatever the statement gets wrong, at its place in the text. */
  bind(tree: Tree, queries: Queries): Bound;
  execute(bound: Bound, run: StatementRun): Answer | Promise<Answer>;
}

export interface Form {
  /** First words of its statements, in upper case. With two words, a table may be called by the first of them. */
  readonly words: readonly string[];
  /** Rules of the grammar, without the end of the statement. */
  readonly grammar: string;
  /** Rule by rule, what makes the tree. */
  readonly actions: ohm.ActionDict<unknown>;
}

/** For docs/syntax.md. */
export interface Reference {
  /** As documents write it: `TRUNCATE TABLE [IF EXISTS] table, …`. */
  readonly syntax: string;
  readonly summary: string;
}

/** One execution, as the session offers it to its statement. */
export interface StatementRun {
  /** Changes a definition or a table: at once, or with the open transaction. */
  define(change: Change): Promise<void>;
  /** The answer of a statement that changed definitions. Others are bound anew. */
  defined(tag: string): Answer;
}
