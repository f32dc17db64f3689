/**
 * The parts of a kind of statement. Each kind is one file of this folder, listed in `mod.ts`, where grammar, binder,
 * session and reference find it. Its change of stored data is a `Change` in `storage/contract.ts`.
 */
import type * as ohm from "ohm-js";
import type { Answer, Client, ConnectionState, Identity, Prepared, ResultColumn } from "../../api.ts";
import type { PostedPlan } from "../../engine/contract.ts";
import type { PlanStatistics } from "../../engine/mod.ts";
import type { AccessCommand, Named, Permission } from "../../access/mod.ts";
import type { Catalogue, Change, PartitionChange, PartitionMove, TableSnapshot } from "../../storage/contract.ts";
import type { Value } from "../../types/mod.ts";
import type { Statement } from "../ast.ts";
import type { Queries } from "../binder/query.ts";
import type { ExplainNode } from "../explain-lines.ts";
import type { Token } from "../lexer.ts";
import type {
  BoundStatement,
  MetadataNode,
  NewColumn,
  NewTable,
  PartitionUnit,
  Refresh,
  View,
  Views,
} from "../plan.ts";

type Category = Prepared["category"];

/** `Tree`: the parsed statement. `Bound`: the statement with resolved names and its plan. */
export interface StatementKind<
  Tree extends Statement = Statement,
  Bound extends BoundStatement<PostedPlan> = BoundStatement<PostedPlan>,
> {
  /** The `kind` of its trees and bound statements, and the grammar rule that reads it. */
  readonly kind: Tree["kind"] & Bound["kind"];
  readonly form: Form;
  /** Its section in the reference. Absent for statements that need none. */
  readonly reference?: Reference;
  readonly category: Category;
  /** Replaces `category` for statements that contain another one, whose category applies. */
  categoryOf?(bound: Bound, categoryOf: (inner: BoundStatement<PostedPlan>) => Category): Category;
  /**
   * Permissions that it may require, besides SELECT on the columns that its queries read. `bind` determines which it
   * requires, and on what.
   */
  readonly requires: readonly Permission[];
  /** Its name in the error for a statement that cannot run in a transaction. Absent if it can. */
  readonly notInTransaction?: string;
  /** @throws {SqlError} for any mistake in the statement, with its position in the text. */
  bind(tree: Tree, queries: Queries): Bound;
  /** The rows that it returns. Absent if it returns none. */
  rows?(bound: Bound): StatementRows | undefined;
  /** For SHOW: the source of the rows, which are made when the query starts. The plan names the source by `kind`. */
  readonly source?: StatementSource;
  /** The first line of EXPLAIN, above the plan. Absent if the plan is sufficient. */
  explain?(bound: Bound): string;
  execute(bound: Bound, run: StatementRun): Answer | Promise<Answer>;
}

export interface Form {
  /** First words of its statements, in upper case. With two words, a table may have the name of the first word. */
  readonly words?: readonly string[];
  /** True if a table may be called by the first word: `close limit 5` is a query. */
  readonly mayBeTable?: boolean;
  /** Replaces `words`: rules up to the end of the statement, by first words. */
  readonly statements?: Readonly<Record<string, string>>;
  /** True if it may follow WITH. */
  readonly followsWith?: boolean;
  /** Grammar rules, without the end of the statement. */
  readonly grammar?: string;
  /** For each rule, the action that makes the tree. */
  readonly actions?: ohm.ActionDict<unknown>;
  /** Reads statements that the grammar does not cover. */
  readonly reader?: Reader;
}

export interface Reader {
  readonly words: readonly string[];
  /** Keywords besides the first words. */
  readonly keywords?: readonly string[];
  /** Returns undefined if the tokens from `from` to `to` are not such a statement. `inner` reads a nested statement. */
  read(tokens: Token[], from: number, to: number, inner: (from: number) => Statement): Statement | undefined;
}

/** For docs/syntax.md. */
export interface Reference {
  /**
   * The syntax in the notation of the documents: `TRUNCATE TABLE [IF EXISTS] table, …`. Several forms are on separate
   * lines.
   */
  readonly syntax: string;
  readonly summary: string;
}

export interface StatementRows {
  columns: ResultColumn[];
  /** Index of the designated timestamp, or -1. */
  timestamp: number;
  /** PostgreSQL's command tag, before the number of rows. Undefined: SELECT. */
  tag?: Prepared["rowsTag"];
}

export interface StatementSource {
  rows(services: SourceServices, node: MetadataNode): Value[][];
}

/** Statements of access control by the objects that they create. */
export type AccessCategory = "USERS" | "GROUPS" | "SERVICE_ACCOUNTS" | "PERMISSIONS";

/** Data from which sources make their rows. */
export interface SourceServices {
  /**
   * Returns the statements that create users, groups, service accounts and grants, in an order in which they can be
   * run. @throws {SqlError} if they are `required` and the user may not see them, or access control is off.
   */
  accessTexts(categories: readonly AccessCategory[], required: boolean, at: number): string[];
  /** The tables as the session sees them. */
  readonly catalogue: Catalogue;
  /** Those of them that are not the server's own. */
  userTables(): TableSnapshot[];
  /** In the order in which they can be created. */
  readonly views: { all(): View[] };
  readonly options: {
    /** The settings of the server. */
    parameters(): Value[][];
  };
}

/** Services of the session for one execution of a statement. */
export interface StatementRun {
  readonly identity: Identity;
  readonly client?: Client;
  readonly signal?: AbortSignal;
  /** The tables as the session sees them. */
  readonly catalogue: Catalogue;
  readonly isInTransaction: boolean;
  readonly services: StatementServices;

  /** Gives the session the permissions of this service account. Undefined gives it its own permissions again. */
  assume(account: string | undefined): void;

  begin(): void;
  /** Returns the command tag. A failed transaction is rolled back. */
  commit(): Promise<string>;
  rollback(): Promise<void>;
  readonly savepoints: Savepoints;
  /** Undefined over HTTP, where no state outlives a request. */
  readonly connection?: ConnectionState;

  /** Returns the rows of the plan. */
  query(plan: PostedPlan): Answer | Promise<Answer>;
  /** Returns the nodes of the statement's physical plan. */
  explain(statement: BoundStatement<PostedPlan>): Promise<ExplainNode[]>;
  /** Executes the statement and measures its operators. The rows of a query are discarded. */
  analyze(statement: BoundStatement<PostedPlan>): Promise<AnalyzedStatement>;

  /**
   * Changes a definition or a table, immediately or with the open transaction.
   * The answer of a statement that changed definitions. Prepared statements are bound again.
   */
  define(change: Change | PartitionChange): Promise<void>;
  /** Returns the answer of a statement that changed definitions. Other prepared statements are bound again. */
  defined(tag: string): Answer;
  /**
   * Creates a table with the plan's rows and returns their number. `owner` gets the permissions on it instead of the
   * user.
   */
  createTable(table: NewTable, rows: PostedPlan, owner?: string): Promise<number>;
  /** Adds the plan's rows and returns their number. */
  append(target: ChangedTable): number | Promise<number>;
  /** Changes the rows that the plan returns, and gives their number. The plan's columns are the new values and then the row ids. */
  changeRows(target: ChangedTable, change: "update" | "delete"): Promise<number>;
  /** Converts a column to another type. Not in a transaction. */
  changeType(target: RetypedColumn): Promise<void>;
  /** Moves the partitions whose starts the plan returns, and gives their number. */
  movePartitions(target: ChangedTable, movesOf: (starts: readonly bigint[]) => PartitionMove[]): Promise<number>;
}

/** Of the open transaction. Names may repeat: the last one counts. @throws {SqlError} 25P01 if there is none, 3B001 at `at`. */
export interface Savepoints {
  add(name: string): void;
  release(name: string, at: number): void;
  rollbackTo(name: string, at: number): Promise<void>;
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
  /** Offset of the table's name in the statement. */
  at: number;
  /** Offsets of the designated timestamps of VALUES for a table without partitions, which accepts rows only in their order. */
  timesAt?: readonly number[];
}

/** A copy that is to be made. */
export type CopyOrder =
  | {
    action: "from";
    table: string;
    file: string;
    hasHeader: boolean;
    timestamp?: string;
    format?: string;
    delimiter?: string;
    partitionBy?: PartitionUnit;
    onError: "skipCol" | "skipRow" | "abort";
  }
  | { action: "to"; table?: string; text: string; file: string; codec?: string; level?: number; pageSize?: number };
/** `column`: its new definition. `at`: offset of the table's name in the statement. */
export interface RetypedColumn {
  tableId: number;
  columnId: number;
  column: NewColumn;
  at: number;
}

/** Services of the database that statements use. */
export interface StatementServices {
  /** Undefined if access control is off. */
  readonly accessStatements?: {
    /** Executes the command and returns its rows, if any. @throws {SqlError} */
    execute(command: AccessCommand, by: { identity: Identity; client?: Client }): Promise<Value[][] | undefined>;
    /**
     * @throws {SqlError} unless the user may assume the service account.
     */
    checkAssume(identity: Identity, account: Named): void;
    /** Returns the name of the user, group or service account. @throws {SqlError} if it does not exist. */
    ownerNamed(owner: Named): string;
  };
  readonly activity: {
    /** Cancels the statement with this number. False if there is none. @throws {SqlError} at `at` if the user may not cancel it. */
    cancel(id: number, by: { identity: Identity; canWrite: boolean }, at: number): boolean;
  };
  readonly views: Views & {
    /** True if there is a view of this name, or one is being made. */
    isTaken(name: string): boolean;
    /** Keeps a view. @throws {SqlError} at `at` if there is one already (create), or none (alter), or a table. */
    set(view: View, action: "create" | "replace" | "alter", at: number): Promise<void>;
    /** @throws {SqlError} at `at` if there is none. */
    drop(name: string, at: number): Promise<void>;
  };
  readonly materialized: {
    /** Begins a refresh in the background. */
    refresh(tableId: number, refresh: Refresh): void;
  };
  readonly copies: {
    /** Starts a copy in the background, and returns its id. @throws {SqlError} if it cannot begin. */
    start(order: CopyOrder, by: { identity: Identity; client?: Client }): Promise<string>;
    cancel(id: string, by: { identity: Identity; client?: Client }): "cancelled" | "unknown";
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
