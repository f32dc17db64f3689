import type { Named } from "../../../access/mod.ts";
import { SqlError, SQLSTATE } from "../../../errors.ts";
import type { Statement } from "../../ast.ts";
import type { BoundStatement } from "../../plan.ts";
import { at, optional } from "../../tree-nodes.ts";
import { done, type StatementKind, type StatementRun } from "../statement.ts";
import { accessIsOff } from "./access-kind.ts";

interface Assume extends Statement {
  kind: "assume";
  account: Named;
}

export const assume: StatementKind<Assume, BoundStatement<never> & Assume> = {
  kind: "assume",
  form: {
    words: ["ASSUME SERVICE"],
    grammar: String.raw`
  assume = "ASSUME" "SERVICE" "ACCOUNT" principal`,
    actions: {
      assume(assume, _service, _account, principal): Assume {
        return { kind: "assume", at: at(assume), account: principal.tree() };
      },
    },
  },
  reference: {
    syntax: "ASSUME SERVICE ACCOUNT name",
    summary: "Gives the session the permissions of the service account instead of its own.",
  },
  category: "ddl",
  requires: [],
  notInTransaction: "ASSUME",
  bind: (tree) => tree,
  execute({ account, at }, run) {
    checkSession(run, at);
    run.services.accessStatements!.checkAssume(run.identity, account);
    run.assume(account.text);
    return done("ddl", "ASSUME");
  },
};

interface Exit extends Statement {
  kind: "exitAccount";
  account?: Named;
}

export const exitAccount: StatementKind<Exit, BoundStatement<never> & Exit> = {
  kind: "exitAccount",
  form: {
    words: ["EXIT SERVICE"],
    grammar: String.raw`
  exitAccount = "EXIT" "SERVICE" "ACCOUNT" principal?`,
    actions: {
      exitAccount(exit, _service, _account, principal): Exit {
        return { kind: "exitAccount", at: at(exit), account: optional(principal) };
      },
    },
  },
  reference: {
    syntax: "EXIT SERVICE ACCOUNT [name]",
    summary: "Ends ASSUME: the session has its own permissions again.",
  },
  category: "ddl",
  requires: [],
  notInTransaction: "EXIT",
  bind: (tree) => tree,
  execute({ account, at }, run) {
    checkSession(run, at);
    const { assumed } = run.identity;
    const isAssumed = account === undefined || account.text.toLowerCase() === assumed?.toLowerCase();
    if (assumed === undefined || !isAssumed) {
      const what = assumed === undefined ? "no service account" : `the service account ${assumed}`;
      throw new SqlError(`the session has assumed ${what}`, account?.at ?? at, SQLSTATE.objectNotInState);
    }
    run.assume(undefined);
    return done("ddl", "EXIT");
  },
};

/**
 * @throws over HTTP: each request is a session of its own, so no later statement would use the permissions.
 */
function checkSession({ client, services }: StatementRun, at: number): void {
  if (services.accessStatements === undefined) throw accessIsOff(at);
  if (client?.wire === "http") {
    const message =
      "a service account is assumed for a session, which HTTP requests do not have: connect over the PostgreSQL wire";
    throw new SqlError(message, at, SQLSTATE.featureNotSupported);
  }
}
