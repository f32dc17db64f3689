/**
 * Changes of tables outside of transactions: each group of commands is one group of commits. If a group fails, its commands are
 * executed one by one, as one of them may be at fault.
 */
import { SqlError, SQLSTATE } from "../errors.ts";
import { type Definition, encodeBatch, encodePlaces, openedBatch } from "./blocks.ts";
import { toJson } from "./bytes.ts";
import type { Command, Outcome } from "./commands.ts";
import type { AccessChange, AppendBatch, ChangedBatch, TableRows, TableSchema } from "./contract.ts";
import { creation, definitionOf } from "./definitions.ts";
import { ofPresentColumns } from "./former-columns.ts";
import { inTableOrder } from "./row-ids.ts";
import { checkBatch, checkUpdate } from "./rows.ts";
import type { Store } from "./store.ts";
import type { Table } from "./table.ts";
import { BLOCK_KIND, FLAG_LAST } from "./wal/format.ts";

export type Creation = Extract<Command, { kind: "createTable" }>;
export type AddColumns = Extract<Command, { kind: "addColumns" }>;

export class Changes {
  constructor(private readonly store: Store) {}

  create(commands: readonly Creation[]): Outcome[] {
    const outcomes: Outcome[] = commands.map(() => ({}));
    const names = new Set<string>();
    const accepted = commands.flatMap((command, place) => {
      const { table, rows = [], creator } = command, name = table.name.toLowerCase();
      try {
        if (names.has(name)) throw nameIsTaken(table.name);
        const schema = this.store.newSchema(table, names.size);
        for (const batch of rows) checkBatch(schema, batch);
        names.add(name);
        return [{ command, place, schema, rows, definition: creation(schema, creator), lsns: [0, 0] }];
      } catch (error) {
        outcomes[place] = { error };
        return [];
      }
    });
    if (accepted.length === 0) return outcomes;
    try {
      const lsns = this.store.commits.write((log) =>
        accepted.flatMap((created) => {
          const { schema, rows, definition } = created;
          const info = { tableId: schema.id, schemaVersion: 0 };
          const last = (k: number) => (k === rows.length ? FLAG_LAST : 0);
          const lsns = [log.add({ ...info, kind: BLOCK_KIND.definition, flags: last(0) }, [toJson(definition)])];
          rows.forEach((batch, k) =>
            lsns.push(log.add({ ...info, kind: BLOCK_KIND.append, flags: last(k + 1) }, encodeBatch(schema, batch)))
          );
          created.lsns = [lsns[0], lsns.at(-1)!];
          return lsns;
        })
      );
      for (const _ of accepted) this.store.numbers.takeTableId();
      this.store.commits.apply(lsns, [], () => {
        for (const { schema, rows, definition, lsns: [first, last] } of accepted) {
          const table = this.applyCreate(schema);
          this.store.access.follow(definition.access, first);
          table.lsn = last;
          this.store.applyRows(table, rows);
        }
      }, () => {
        for (const { schema } of accepted) {
          const table = this.store.tables.get(schema.id);
          this.store.tables.delete(schema.id);
          if (table !== undefined) this.store.publisher.forget(table);
        }
      });
      this.store.commits.count(accepted.length, accepted.flatMap(({ rows }) => rows));
      this.store.expiry.drop(accepted.map(({ schema }) => this.store.tables.get(schema.id)!));
      for (const { place, schema } of accepted) outcomes[place] = { value: schema.id };
    } catch (error) {
      // One of them may be at fault: make the others separately.
      for (const { command, place } of accepted) {
        outcomes[place] = accepted.length === 1 ? { error } : this.create([command])[0];
      }
    }
    return outcomes;
  }

  append(commands: readonly (Command & { kind: "append" })[]): Outcome[] {
    return this.appendOpened(commands.map(({ changes }) => opened(changes)));
  }

  private appendOpened(commands: readonly OpenedRows[][]): Outcome[] {
    const outcomes: Outcome[] = commands.map(() => ({}));
    const accepted = commands.filter((changes, k) => {
      try {
        this.store.seal.check();
        for (const change of changes) {
          const { schema } = this.store.table(change.tableId);
          change.batches = change.batches.map((batch) => ofPresentColumns(schema, batch));
          for (const batch of change.batches) checkBatch(schema, batch);
        }
        return changes.some(({ batches }) => batches.length > 0);
      } catch (error) {
        outcomes[k] = { error };
        return false;
      }
    });
    if (accepted.length === 0) return outcomes;
    try {
      const byTable = new Map<Table, { batches: AppendBatch[]; lsn: number }>();
      const lsns = this.store.commits.write((log) => {
        const lsns: number[] = [];
        for (const changes of accepted) {
          const flat = changes.flatMap(({ tableId, batches }) => batches.map((batch) => ({ tableId, batch })));
          flat.forEach(({ tableId, batch }, k) => {
            const table = this.store.tables.get(tableId)!;
            const { schema } = table;
            const flags = k === flat.length - 1 ? FLAG_LAST : 0;
            const info = { kind: BLOCK_KIND.append, flags, tableId, schemaVersion: schema.schemaVersion };
            const lsn = log.add(info, encodeBatch(schema, batch));
            lsns.push(lsn);
            const entry = byTable.get(table);
            if (entry === undefined) byTable.set(table, { batches: [batch], lsn });
            else entry.batches.push(batch), entry.lsn = lsn;
          });
        }
        return lsns;
      });
      this.store.commits.apply(lsns, [...byTable.keys()], () => {
        for (const [table, { batches, lsn }] of byTable) {
          this.store.applyRows(table, batches);
          table.lsn = lsn;
        }
      });
      this.store.commits.count(accepted.length, [...byTable.values()].flatMap(({ batches }) => batches));
      this.store.expiry.drop(byTable.keys());
    } catch (error) {
      // One table may be at fault (a damaged segment): apply the other commands separately.
      commands.forEach((command, k) => {
        if (accepted.includes(command)) {
          outcomes[k] = accepted.length === 1 ? { error } : this.appendOpened([command])[0];
        }
      });
    }
    return outcomes;
  }

  update(table: Table, batches: readonly ChangedBatch[]): undefined {
    this.store.seal.check();
    const { ordinals, columns } = inTableOrder(table, batches);
    if (ordinals.length === 0) return;
    const change: AppendBatch = { rowCount: ordinals.length, columns };
    checkUpdate(table.schema, change);
    this.changeRows(
      table,
      BLOCK_KIND.update,
      encodeBatch(table.schema, change, encodePlaces(ordinals, table.segments)),
      () => table.update(ordinals, columns),
    );
  }

  delete(table: Table, batches: readonly ChangedBatch[]): undefined {
    this.store.seal.check();
    const { ordinals } = inTableOrder(table, batches);
    if (ordinals.length === 0) return;
    const payload = [encodePlaces(ordinals, table.segments)];
    this.changeRows(table, BLOCK_KIND.delete, payload, () => table.delete(ordinals));
  }

  private changeRows(table: Table, kind: number, payload: Uint8Array[], apply: () => void): void {
    const info = { kind, flags: FLAG_LAST, tableId: table.schema.id, schemaVersion: table.schema.schemaVersion };
    const write = () => this.store.commits.write((log) => [log.add(info, payload)]);
    const lsns = kind === BLOCK_KIND.delete ? this.store.reserve.use(write) : write();
    this.store.commits.apply(lsns, [table], () => {
      apply();
      table.lsn = lsns[0];
    });
    this.store.commits.count(1);
  }

  addColumns(commands: readonly AddColumns[]): Outcome[] {
    const outcomes: Outcome[] = commands.map(() => ({}));
    const accepted = commands.flatMap((command, place) => {
      try {
        const table = this.store.table(command.tableId);
        return [{ place, table, definition: definitionOf(table, command) }];
      } catch (error) {
        outcomes[place] = { error };
        return [];
      }
    });
    try {
      if (accepted.length > 0) this.defineAll(accepted);
    } catch {
      // One of them may be at fault: make the others separately.
      for (const { place, table, definition } of accepted) {
        try {
          this.define(table, definition);
        } catch (error) {
          outcomes[place] = { error };
        }
      }
    }
    return outcomes;
  }

  define(table: Table, definition: Definition): undefined {
    this.defineAll([{ table, definition }]);
  }

  /** Makes definitions of different tables durable together. */
  private defineAll(all: readonly { table: Table; definition: Definition }[]): void {
    this.store.seal.check();
    const write = () =>
      this.store.commits.write((log) =>
        all.map(({ table: { schema: { id: tableId, schemaVersion } }, definition }) => {
          const info = { kind: BLOCK_KIND.definition, flags: FLAG_LAST, tableId, schemaVersion };
          return log.add(info, [toJson(definition)]);
        })
      );
    const lsns = all.some(({ definition }) => definition.op === "schema") ? write() : this.store.reserve.use(write);
    this.store.commits.apply(lsns, all.map(({ table }) => table), () => {
      all.forEach(({ table, definition }, k) => {
        this.store.applyDefinition(table, definition, lsns[k]);
        this.store.access.follow(definition.access, lsns[k]);
      });
    });
    this.store.commits.count(all.length);
  }

  changeAccess(changes: readonly AccessChange[]): undefined {
    this.store.seal.check();
    this.store.access.check(changes);
    const records = changes.map(({ key, after }) => [key, after] as const);
    const info = { kind: BLOCK_KIND.access, flags: FLAG_LAST, tableId: 0, schemaVersion: 0 };
    const lsns = this.store.commits.write((log) => [log.add(info, [toJson(records)])]);
    this.store.commits.apply(lsns, [], () => this.store.access.apply(records, lsns[0]));
    this.store.commits.count(1);
  }

  private applyCreate(schema: TableSchema): Table {
    const table = this.store.newTable(schema);
    this.store.makeDirectory(table);
    table.changed = true;
    this.store.tables.set(schema.id, table);
    this.store.publisher.touch(table);
    return table;
  }
}

export function nameIsTaken(name: string): SqlError {
  return new SqlError(`Cannot use the name ${name}: there is such a table`, 0, SQLSTATE.duplicateTable);
}

interface OpenedRows {
  tableId: number;
  batches: AppendBatch[];
}

function opened(changes: readonly TableRows[]): OpenedRows[] {
  return changes.map(({ tableId, batches }) => ({ tableId, batches: batches.map(openedBatch) }));
}
