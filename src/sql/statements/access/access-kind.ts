/** The common form of statements that change access control: a command as data, which the database executes. */
import { type AccessCommand, permissionsFor } from "../../../access/mod.ts";
import { SqlError, SQLSTATE } from "../../../errors.ts";
import type { Statement } from "../../ast.ts";
import type { BoundStatement, Column } from "../../plan.ts";
import { done, type StatementKind } from "../statement.ts";

export interface AccessStatement extends Statement {
  command: AccessCommand;
}

interface BoundAccessStatement extends BoundStatement<never> {
  command: AccessCommand;
  at: number;
}

type Kind = StatementKind<AccessStatement, BoundAccessStatement>;

type AccessKind = Pick<Kind, "kind" | "form" | "reference" | "requires"> & {
  /** The command tag, as in PostgreSQL. */
  tag: string;
  /** Replaces `tag` if it depends on the command. */
  tagOf?(command: AccessCommand): string;
  /** Columns of the rows that some commands return. */
  columns?(command: AccessCommand): Column[] | undefined;
};

export function accessKind({ tag, tagOf = () => tag, columns, ...kind }: AccessKind): Kind {
  const columnsOf = ({ command }: BoundAccessStatement) => columns?.(command);
  return {
    ...kind,
    category: "ddl",
    notInTransaction: tag,
    bind({ command, at }, { binding }) {
      for (const permission of permissionsFor(command)) binding.requires.add(permission, at);
      // Statements with secrets are not kept.
      binding.boundAnew = true;
      return { kind: kind.kind, command, at };
    },
    rows: (bound) => {
      const given = columnsOf(bound);
      return given && { columns: given, timestamp: -1 };
    },
    async execute(bound, run) {
      const { accessStatements } = run.services;
      if (accessStatements === undefined) throw accessIsOff(bound.at);
      const rows = await accessStatements.execute(bound.command, run);
      const given = columnsOf(bound);
      if (rows === undefined || given === undefined) return done("ddl", tagOf(bound.command));
      return run.query({ node: "values", columns: given, rows, timestamp: -1, order: "none" });
    },
  };
}

/** SQLSTATE 55000. */
export function accessIsOff(at: number): SqlError {
  return new SqlError("access control is off (acl.enabled=false)", at, SQLSTATE.objectNotInState);
}
