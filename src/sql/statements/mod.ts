/** The kinds of statements. */
import type { Statement } from "../ast.ts";
import type { BoundStatement } from "../plan.ts";
import type { StatementKind } from "./statement.ts";
import { truncate } from "./truncate.ts";

export const STATEMENTS: readonly StatementKind[] = [truncate];

const BY_KIND = new Map(STATEMENTS.map((statement) => [statement.kind, statement]));

export function kindOf(statement: Statement | BoundStatement<unknown>): StatementKind {
  const kind = BY_KIND.get(statement.kind);
  if (kind === undefined) throw new Error(`${statement.kind} is no kind of statement`);
  return kind;
}

export const isListed = ({ kind }: { kind: string }): boolean => BY_KIND.has(kind);

/** Kinds that begin with the same words. The grammar has a rule `form` for any of them, and `statement` up to the end. */
export interface StatementGroup {
  readonly words: string;
  readonly form: string;
  readonly statement: string;
  readonly kinds: readonly StatementKind[];
}

export const STATEMENT_GROUPS: readonly StatementGroup[] = grouped();

function grouped(): StatementGroup[] {
  const byWords = Map.groupBy(
    STATEMENTS.flatMap((kind) => kind.form.words.map((words) => ({ kind, words }))),
    ({ words }) => words,
  );
  return [...byWords].map(([words, entries]) => {
    // CANCEL QUERY → cancelQuery
    const name = words.toLowerCase().replace(/ (\w)/g, (_, letter: string) => letter.toUpperCase());
    return { words, form: `${name}Form`, statement: `${name}Statement`, kinds: entries.map(({ kind }) => kind) };
  });
}
