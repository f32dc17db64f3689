/**
 * What a kind of statement is made of. Each kind is one file of this folder, listed in `mod.ts`: the grammar, the binder, the
 * session and the reference find it there. What storage does for it is a `Change` in `storage/contract.ts`.
 */
import type * as ohm from "ohm-js";
import type { Answer, Client, Identity, Prepared, ResultColumn } from "../../api.ts";
import type { PostedPlan } from "../../engine/contract.ts";
import type { PlanStatistics } from "../../engine/mod.ts";
import type { AccessCommand, Named, Permission } from "../../access/mod.ts";
import type { AppendBatch, Catalogue, Change, PartitionChange } from "../../storage/contract.ts";
import type { Value } from "../../types/mod.ts";
import type { Statement } from "../ast.ts";
import type { Queries } from "../binder/query.ts";
import type { ExplainNode } from "../explain-lines.ts";
import type { Token } from "../lexer.ts";
import type { BoundStatement, Column, MetadataNode, NewTable } from "../plan.ts";

type Category = Prepared["category"];

/** `Tree`: the statement as written. `Bound`: the same with its names resolved and its plan. */
export interface StatementKind<
  Tree extends Statement = Statement,
  Bound extends BoundStatement<PostedPlan> = BoundStatement<PostedPlan>,
> {
  /** Names its trees and bound statements, and the rule of the grammar that reads it. */
  readonly kind: Tree["kind"] & Bound["kind"];
  readonly form: Form;
  /** Absent if there is nothing to say of it. */
  readonly reference?: Reference;
  readonly category: Category;
  /** Instead of `category`, where it is that of a statement within. */
  categoryOf?(bound: Bound, categoryOf: (inner: BoundStatement<PostedPlan>) => Category): Category;
  /** Permissions that it may require, besides SELECT on what its queries read. `bind` says which of them on what. */
  readonly requires: readonly Permission[];
  /** What errors call it, if it cannot run in a transaction. */
  readonly notInTransaction?: string;
  /** @throws {SqlError} for any mistake in the statement, with its position in the text. */
  bind(tree: Tree, queries: Queries): Bound;
  /** The rows that it answers with. Absent if it answers with none. */
  rows?(bound: Bound): StatementRows | undefined;
  /** Of SHOW: rows that are made when the query starts. Its plan names it by the kind. */
  readonly source?: StatementSource;
  /** The line of EXPLAIN over that of its plan. Absent if the plan says it all. */
  explain?(bound: Bound): string;
  execute(bound: Bound, run: StatementRun): Answer | Promise<Answer>;
}

export interface Form {
  /** First words of its statements, in upper case. With two words, a table may be called by the first of them. */
  readonly words?: readonly string[];
  /** Instead of `words`: rules up to the end of the statement, by first words. */
  readonly statements?: Readonly<Record<string, string>>;
  /** True if it may follow WITH. */
  readonly followsWith?: boolean;
  /** Rules of the grammar, without the end of the statement. */
  readonly grammar?: string;
  /** Rule by rule, what makes the tree. */
  readonly actions?: ohm.ActionDict<unknown>;
  /** For statements that the grammar does not read. */
  readonly reader?: Reader;
}

export interface Reader {
  readonly words: readonly string[];
  /** Undefined if the tokens from `from` to `to` are no such statement. `inner` reads a statement within. */
  read(tokens: Token[], from: number, to: number, inner: (from: number) => Statement): Statement | undefined;
}

/** For docs/syntax.md. */
export interface Reference {
  /** As documents write it: `TRUNCATE TABLE [IF EXISTS] table, …`. Several forms stand in several lines. */
  readonly syntax: string;
  readonly summary: string;
}

export interface StatementRows {
  columns: ResultColumn[];
  /** Index of the designated timestamp, or -1. */
  timestamp: number;
}

export interface StatementSource {
  readonly columns: readonly Column[];
  rows(services: SourceServices, node: MetadataNode): Value[][];
}

/** Statements of access control, by what they make. */
export type AccessCategory = "USERS" | "GROUPS" | "SERVICE_ACCOUNTS" | "PERMISSIONS";

/** What the rows of sources are made from. */
export interface SourceServices {
  /**
   * The statements that make users, groups, service accounts and grants, in an order in which they can be run. @throws {SqlError} if
   * they are `required` and the user may not see them, or access control is off.
   */
  accessTexts(categories: readonly AccessCategory[], required: boolean, at: number): string[];
  /** The tables as the session sees them. */
  readonly catalogue: Catalogue;
  readonly options: {
    /** The settings of the server. */
    parameters(): Value[][];
  };
}

/** One execution, as the session offers it to its statement. */
export interface StatementRun {
  readonly identity: Identity;
  readonly client?: Client;
  readonly signal?: AbortSignal;
  /** The tables as the session sees them. */
  readonly catalogue: Catalogue;
  readonly isInTransaction: boolean;
  readonly services: StatementServices;

  /** From now on the session has the rights of this service account; undefined: its own. */
  assume(account: string | undefined): void;

  begin(): void;
  /** Gives the command tag: a transaction that has failed is rolled back. */
  commit(): Promise<string>;
  rollback(): Promise<void>;

  /** Answers with the rows of the plan. */
  query(plan: PostedPlan): Answer | Promise<Answer>;
  /** The nodes of the statement's physical plan. */
  explain(statement: BoundStatement<PostedPlan>): Promise<ExplainNode[]>;
  /** Executes the statement and measures its operators. The rows of a query are not sent. */
  analyze(statement: BoundStatement<PostedPlan>): Promise<AnalyzedStatement>;

  /** Changes a definition or a table: at once, or with the open transaction. */
  define(change: Change | PartitionChange): Promise<void>;
  /** The answer of a statement that changed definitions. Others are bound anew. */
  defined(tag: string): Answer;
  /** Makes a table of the plan's rows. Gives their number. `owner`: gets the rights on it instead of the user. */
  createTable(table: NewTable, rows: PostedPlan, owner?: string): Promise<number>;
  /** Adds the plan's rows. Gives their number. */
  append(target: ChangedTable): Promise<number>;
  /**
   * Changes the rows whose ids the plan gives last, behind new values of the columns; or the partitions whose starts it
   * gives. Gives their number.
   */
  changeRows(target: ChangedTable, changeOf: (rows: ChangedRows) => Change | PartitionChange): Promise<number>;
}

/** A statement that EXPLAIN ANALYZE has executed. */
export interface AnalyzedStatement {
  nodes: ExplainNode[];
  nanos: number;
  /** Undefined if no operator ran. */
  statistics?: PlanStatistics;
  /** Undefined for queries. */
  changedRows?: number;
}

export interface ChangedTable {
  tableId: number;
  columnIds: number[];
  plan: PostedPlan;
  /** Where the statement names the table. */
  at: number;
}

export interface ChangedRows {
  tableId: number;
  /** Of the table that the row ids belong to. */
  version: number;
  rowIds: BigInt64Array;
  columns: AppendBatch["columns"];
}

/** Services of the database that statements use. */
export interface StatementServices {
  /** Undefined: access control is off. */
  readonly accessStatements?: {
    /** Gives the rows that the statement answers with, if it has any. @throws {SqlError} */
    execute(command: AccessCommand, by: { identity: Identity; client?: Client }): Promise<Value[][] | undefined>;
    /** @throws {SqlError} unless the user may take on the rights of the service account. */
    checkAssume(identity: Identity, account: Named): void;
    /** The name of the user, group or service account. @throws {SqlError} if there is none. */
    ownerNamed(owner: Named): string;
  };
  readonly activity: {
    /** Cancels the statement of this number. @throws {SqlError} at `at` if there is none, or it may not. */
    cancel(id: number, by: { identity: Identity; canWrite: boolean }, at: number): void;
  };
  readonly backups: {
    /** Opens a checkpoint. @throws {SqlError} at `at` if one is open. */
    begin(at: number): Promise<void>;
    /** Releases the checkpoint, if one is open. */
    end(): Promise<void>;
    backup(name: string | undefined, at: number, signal?: AbortSignal): Promise<unknown>;
  };
}

export const done = (category: Exclude<Category, "query">, tag: string, rows = 0): Answer => ({
  kind: "done",
  category,
  tag,
  rows,
});
