import type { Statement } from "../ast.ts";
import type { BoundStatement } from "../plan.ts";
import { at, optional, token } from "../tree-nodes.ts";
import { done, type StatementKind } from "./statement.ts";

interface BackupName {
  text: string;
  at: number;
}

interface Backup extends Statement {
  kind: "backup";
  name?: BackupName;
}

interface BoundBackup extends BoundStatement<never> {
  kind: "backup";
  name?: string;
  at: number;
}

export const backup: StatementKind<Backup, BoundBackup> = {
  kind: "backup",
  form: {
    words: ["BACKUP DATABASE"],
    grammar: String.raw`
  backup = "BACKUP" "DATABASE" backupName?
  backupName = "TO" "<string>"`,
    actions: {
      backup(backup, _database, name): Backup {
        return { kind: "backup", at: at(backup), name: optional(name) };
      },
      backupName(_to, name): BackupName {
        const { text, at } = token(name);
        return { text, at };
      },
    },
  },
  reference: {
    syntax: "BACKUP DATABASE [TO 'name']",
    summary: "Copies the database to a directory of `cairo.backup.root` while it is in use.",
  },
  category: "ddl",
  requires: ["BACKUP DATABASE"],
  notInTransaction: "BACKUP",

  bind({ name, at }, { binding }) {
    binding.requires.add("BACKUP DATABASE", at);
    return { kind: "backup", name: name?.text, at: name?.at ?? at };
  },

  async execute({ name, at }, { services: { backups }, signal }) {
    await backups.backup(name, at, signal);
    return done("ddl", "BACKUP");
  },
};
