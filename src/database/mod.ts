/** Implements the API of `../api.ts`. */
import type { Identity, Session } from "../api.ts";
import { ProviderStatistics } from "../auth/mod.ts";
import { SqlError, SQLSTATE } from "../errors.ts";
import { createMailboxes, createScheduler, parquetSchema, removeSpilled } from "../engine/mod.ts";

import { createRegistry } from "../sql/functions/mod.ts";
import { answerCall, languageReference, LongStatement, quickEffort } from "../sql/mod.ts";
import {
  type AppendBatch,
  type Catalogue,
  createPool,
  openStorage,
  realFiles,
  SHARED_WORD,
  type TableRows,
  type TableSnapshot,
} from "../storage/mod.ts";
import { AccessControl } from "./access/control.ts";
import { AccessStatements } from "./access/statements.ts";
import { ExternalUsers, NO_SIGN_ONS } from "./access/external.ts";
import { SignIn } from "./access/sign-in.ts";
import { Activity } from "./activity.ts";
import { Backups } from "./backups.ts";
import { Copies } from "./copies.ts";
import { withDevelopmentStatements } from "./development.ts";
import { RowsToAdd } from "./constant-rows.ts";
import { DASHBOARDS_TABLE, StoredDashboards } from "./dashboards.ts";
import { CsvImport } from "./csv-import.ts";
import { type Core, type DatabaseOptions, type OpenedDatabase, SERVER } from "./core.ts";
import { Execution } from "./execution.ts";
import { statisticsOf } from "./statistics.ts";
import { Ingest } from "./ingest.ts";
import { resolveMetadata } from "./metadata.ts";
import { LastWrites } from "./last-writes.ts";
import { Planner } from "./planner.ts";
import { OWN_TABLES, planText } from "./planning.ts";
import { TableLocks } from "./locks.ts";
import { Progress } from "./progress.ts";
import { serverFacts } from "./server-facts.ts";
import { DatabaseSession } from "./session.ts";
import { factsOf, type Planning, StatementCache } from "./statements.ts";
import { marksOf } from "./sources.ts";
import { shareRowKernel } from "../wire/encode/mod.ts";
import { Traces } from "./traces.ts";
import { TurnGroups } from "./turn-groups.ts";
import { MaterializedViews } from "./materialized-views.ts";
import { ViewFacts } from "./view-facts.ts";
import { StoredViews } from "./views.ts";

/** Footers of Parquet files of more bytes are read on the planner's thread: 256 KiB take some ten milliseconds. */
const DIRECT_FOOTER_BYTES_MAX = 256 << 10;
/** Limit of compiled statements cached for a transaction that has changed definitions. */
const TRANSACTION_STATEMENTS_MAX = 100;

export { setAdminPassword } from "./access/admin-password.ts";
export type { DatabaseOptions, OpenedDatabase } from "./core.ts";
export { databaseSections, databaseSettings } from "./settings.ts";

export async function openDatabase(options: DatabaseOptions): Promise<OpenedDatabase> {
  const nowMicros = options.nowMicros ??
    (() => BigInt(Math.round((performance.timeOrigin + performance.now()) * 1000)));
  const mailboxes = createMailboxes(options.execWorkerCount);
  const storage = await openStorage({
    root: options.root,
    heapSizeBytes: options.heapSizeBytes,
    poolSizeBytes: options.poolSizeBytes,
    firstMemoryBytes: options.firstMemoryBytes,
    furtherMemoryBytes: options.furtherMemoryBytes,
    commitMode: options.commitMode === "sync" ? "sync" : "nosync",
    writerThread: options.writerThread,
    checkpointLogBytes: options.checkpointLogBytes,
    checkpointIntervalMs: options.checkpointIntervalMs,
    heldLogBytes: options.heldLogBytes,
    tableCountMax: options.tableCountMax,
    encoding: options.encoding,
    queryThreads: { mailboxes: mailboxes.buffer, count: options.execWorkerCount },
    syncDelayMs: options.syncDelayMs,
    awaitWriter: options.awaitWriter,
    onWriterFailed: options.onWriterFailed,
    onDiskFull: options.onDiskFull,
    log: (level, message) => {
      options.log(level, message);
      // Reached when a commit could not be applied, or the writer stopped.
      if (level === "CRITICAL") options.onUnhandledError?.();
    },
    // Damage on the disk is not an error of this process.
    onDamage: (message) => options.log("CRITICAL", message),
  });
  const { heap, further, catalogue, writer } = storage;
  const access = options.access.enabled
    ? new AccessControl(
      catalogue.access,
      catalogue,
      writer,
      options.access,
      options.audit,
      options.provider?.settings.groupsClaim,
    )
    : undefined;
  await access?.open();
  const external = options.provider && new ExternalUsers(options.provider);
  const nowMs = () => Number(nowMicros() / 1000n);
  for (const line of storage.report) options.log("INFO", line);
  removeSpilled(realFiles, options.spillRoot);
  const pool = createPool(heap, further);
  // Further memories are of machines that have enough.
  const unwatchMemory = further.length === 0 ? options.watchMemory?.({ heap, pool }) : undefined;
  const functions = createRegistry();
  const scheduler = createScheduler({
    heap,
    further,
    workerCount: options.execWorkerCount,
    mailboxes,
    workerUrl: new URL("../workers/exec.ts", import.meta.url),
    log: options.log,
    onUnhandledError: options.onUnhandledError,
    busyMicros: options.busyMicros,
    awaitAnswer: options.awaitAnswer,
    onRest: options.onRest,
  });
  // While the threads load.
  shareRowKernel(heap);
  const neverCancelled = SHARED_WORD.neverCancelled * Int32Array.BYTES_PER_ELEMENT;
  const execution = new Execution(
    { heap, pool, functions, nowMicros, neverCancelled, settings: options },
    scheduler,
    options,
  );
  let schemaVersion = 0, lastPrivateSchemaVersion = 0;
  const planner = new Planner({
    workerUrl: new URL("../workers/planner.ts", import.meta.url),
    importRoot: options.importRoot,
    words: options.wordsMax,
    tokens: options.tokensMax,
    expressions: options.expressionsMax,
    timeoutMs: options.queryTimeoutMs,
    log: options.log,
    onUnhandledError: options.onUnhandledError,
    answer: (question, ofSession, asker = { identity: SERVER }) => {
      const tables = ofSession ?? catalogue;
      switch (question.kind) {
        case "table":
          return tables.table(question.name)?.schema;
        case "tables":
          return tables.tables().map(({ schema }) => schema);
        case "facts": {
          const { rowCount, timestampMin, timestampMax } = tables.tableById(question.tableId)!;
          return { rowCount, timestampMin, timestampMax };
        }
        case "marks":
          return { ...marksOf(question.scans, tables), spills: core.execution.spills };
        case "metadata":
          return resolveMetadata(question.node, { ...core, catalogue: tables }, asker);
        case "call":
          return answerCall(question.call, serverFacts(core, tables, asker));
        case "view":
          return core.views.view(question.name);
      }
    },
  });
  const quick = quickEffort(options.directWordsMax);
  const longFooters = { bytesMax: DIRECT_FOOTER_BYTES_MAX, beyond: () => new LongStatement("the footer is long") };
  const views = new StoredViews({
    session: () => new DatabaseSession(core, SERVER),
    table: (name) => catalogue.table(name)?.schema,
    log: options.log,
    tableCountMax: options.tableCountMax,
  });
  const planning = (tables: Catalogue, versionOf: () => number): Planning => ({
    quick: ({ text, parameterTypes, identity, client, values }) =>
      planText(text, {
        catalogue: tables,
        views,
        ownTables: identity === SERVER ? undefined : OWN_TABLES,
        parameterTypes,
        parameterValues: values,
        importRoot: options.importRoot,
        nowMicros: nowMicros(),
        user: identity.name,
        client: factsOf(client),
        parquetSchema: (path) => parquetSchema(path, options.importRoot, 0, longFooters),
        effort: quick,
      }),
    long: ({ text, parameterTypes, identity, client, values }, wait) =>
      planner.want("statement", {
        text,
        parameterTypes,
        values: values ?? [],
        user: identity.name,
        isOwn: identity === SERVER,
        client: factsOf(client),
        nowMicros: nowMicros(),
        schemaVersion: versionOf(),
      }, { ...wait, catalogue: tables, asker: { identity, client } }),
    schemaVersion: versionOf,
  });
  const statements = new StatementCache(planning(catalogue, () => schemaVersion), options.statementCacheSize);
  const locks = new TableLocks();
  const append = (changes: TableRows[]) =>
    locks.shared(changes.map((change) => change.tableId), () => writer.append(changes));
  const rowCommits = new TurnGroups<RowsToAdd>((list) => append([RowsToAdd.joined(list).change()]));
  const core: Core = {
    options,
    heap,
    further,
    catalogue,
    writer,
    execution,
    statements,
    planner,
    locks,
    scheduler,
    backups: new Backups(writer, options, nowMicros),
    views,
    viewFacts: new ViewFacts({
      all: () => views.all(),
      compile: (text) => statements.get(text, [], { identity: SERVER }),
      version: () => schemaVersion,
    }),
    materialized: new MaterializedViews({
      catalogue,
      writer,
      session: () => new DatabaseSession(core, SERVER),
      nowMicros,
      schemaChanged: () => void core.schemaChanged("ALTER MATERIALIZED VIEW"),
      log: options.log,
    }),
    copies: new Copies({
      importRoot: options.importRoot,
      exportRoot: options.exportRoot,
      nowMicros,
      log: options.log,
      importCsv: (body, of, identity, client, signal) =>
        new CsvImport(core, of, { identity, client }).run(body, signal),
      session: ({ identity, client }) => new DatabaseSession(core, identity, client),
      mayManage: (identity) => access === undefined || access.rightsOf(identity).has("CANCEL ANY COPY"),
    }),
    activity: new Activity(
      nowMicros,
      access && ((identity) => identity === SERVER || access.rightsOf(identity).has("SQL ENGINE ADMIN")),
    ),
    lastWrites: new LastWrites(catalogue, nowMicros),
    server: {
      startedMicros: nowMicros(),
      reloadConfig: () => options.reloadConfig?.() ?? false,
      log: options.log,
    },
    access,
    accessStatements: access && new AccessStatements(access, catalogue, nowMs),
    progress: new Progress({
      logs: options.logsStatements ? "INFO" : options.logsDebug ? "DEBUG" : undefined,
      log: options.log,
      trace: () => options.tracesStatements && !options.readOnly ? (end) => traces.add(end) : undefined,
    }),
    append,
    appendRows: (rows) => rowCommits.run(rows.place, rows, () => append([rows.change()])),
    statementsOf: (tables, versionOf) => new StatementCache(planning(tables, versionOf), TRANSACTION_STATEMENTS_MAX),
    schemaVersion: () => schemaVersion,
    privateSchemaVersion: () => --lastPrivateSchemaVersion,
    exclusively: (tableId, change) => locks.exclusive(tableId, change),
    schemaChanged: (tag) => {
      schemaVersion++;
      return { kind: "done", category: "ddl", tag, rows: 0 };
    },
  };
  const traces = new Traces({
    catalogue,
    writer,
    session: () => new DatabaseSession(core, SERVER),
    nowMicros,
    onError: (error) => options.log("ERROR", `cannot write the traces of statements: ${error}`),
  });
  const ingest = new Ingest(core, nowMicros);
  await views.open();
  if (!options.readOnly) core.materialized.open();
  let referenceText: string | undefined;
  const database: OpenedDatabase = {
    access: access && new SignIn(access, nowMs, options.provider, external),
    session: (identity, client): Session => new DatabaseSession(core, identity, client),
    writeLines: (body, precision, identity, client) => ingest.writeLines(body, precision, { identity, client }),
    importCsv: (body, options, identity, client, signal) =>
      new CsvImport(core, options, { identity, client }).run(body, signal),
    takeLines: (lines, precision) => ingest.takeLines(lines, precision),
    append: async (name: string, batch: AppendBatch, identity: Identity) => {
      const table = catalogue.table(name);
      if (!table) {
        throw new SqlError(`Cannot add rows to ${name}: the table does not exist`, 0, SQLSTATE.undefinedTable);
      }
      access?.require(identity, "INSERT", table.schema);
      await core.append([{ tableId: table.schema.id, batches: [batch] }]);
    },
    table: (name: string): TableSnapshot | undefined => catalogue.table(name),
    dashboards: new StoredDashboards({
      access,
      session: () => new DatabaseSession(core, SERVER),
      hasTable: () => catalogue.table(DASHBOARDS_TABLE) !== undefined,
    }),
    languageReference: () => referenceText ??= JSON.stringify(languageReference()),
    crash: (thread, text) => (thread === "writer" ? storage.crashWriter(text) : scheduler.crash(text)),
    statistics: () => ({
      ...statisticsOf(heap, further, pool, catalogue, statements, planner),
      ...options.provider?.statistics ?? new ProviderStatistics(),
      ...external?.statistics ?? NO_SIGN_ONS,
    }),
    close: async () => {
      unwatchMemory?.();
      await core.copies.close();
      await core.materialized.close();
      await traces.flush();
      planner.close();
      execution.close();
      await scheduler.close();
      await writer.close();
    },
  };
  return options.hasDevelopmentStatements ? withDevelopmentStatements(database) : database;
}
