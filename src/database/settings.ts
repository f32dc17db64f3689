/** The settings of statements and tables. */
import { accessSettings } from "../access/settings.ts";
import {
  bool,
  formatSize,
  generalSettings,
  ignored,
  int,
  type Machine,
  memoryShare,
  ms,
  oneOf,
  path,
  type Section,
  size,
} from "../config/mod.ts";
import { csvSettings } from "../wire/csv/settings.ts";
import { lineSettings } from "../wire/line/settings.ts";

const MIB = 2 ** 20, GIB = 2 ** 30;
/** Limits of `query.tokens.max`. The planner's heap, of 4 GiB, holds the greatest number. */
const TOKENS_A_MIB = 1_500, TOKENS_MAX = 12_000_000;
/** Default of `cairo.max.tables`: what this many tables with rows take is left beside everything else. */
const TABLES_A_MIB = 24;
/** An address has 32 bits, so a memory has less than 4 GiB. */
const MEMORY_BYTES_MAX = 4095 * MIB;
/** What queries, fresh rows and dictionaries have, if the memory is larger than 4095 MiB. Above, all is for the pool. */
const WORKING_BYTES = 2047 * MIB;
const ALL_MEMORY_BYTES_MAX = 1024 * GIB;

/** Settings of running statements. */
const querySettings = {
  execWorkerCount: int("shared.worker.count", (machine) => String(machine.cores), "Threads that run queries.", {
    defaultSaid: "one per core",
    max: 256,
    aliases: ["shared.query.worker.count"],
  }),
  queryTimeoutMs: ms("query.timeout", "60s", "Time limit of a query, which then fails; 0: none.", {
    aliases: ["query.timeout.sec"],
  }),
  directRowsMax: int(
    "query.direct.rows.max",
    10_000,
    "Queries of at most so much work run on the thread that received them, without a worker; -1: always in workers. A row that is sorted, joined or returned counts 1, one that is only scanned 1/16. Rows count after the search for their time.",
    { min: -1 },
  ),
  directWordsMax: int(
    "query.direct.words.max",
    400,
    "Statements of at most this many words are parsed on the thread that received them, longer ones on a separate thread; 0: all on the separate thread.",
  ),
  wordsMax: int(
    "query.words.max",
    50_000,
    "Maximum number of words and marks of a statement, excluding lists of values. Parsing takes 10 to 30 us for each.",
    { min: 1_000 },
  ),
  tokensMax: int(
    "query.tokens.max",
    ({ memoryBytes }) => String(Math.min(TOKENS_MAX, Math.floor(memoryBytes / MIB) * TOKENS_A_MIB)),
    "Maximum number of words and marks of a statement, with those of lists of values. Each takes some 230 bytes until the statement has been planned.",
    {
      defaultSaid: `${TOKENS_A_MIB} for each MiB of the machine's memory, at most ${TOKENS_MAX}`,
      min: 50_000,
      max: TOKENS_MAX,
    },
  ),
  expressionsMax: int(
    "query.expressions.max",
    200_000,
    "Maximum number of expressions of a statement. Expressions of sub-queries, columns and variables count each time that their name is used.",
    { min: 1_000 },
  ),
  tracesStatements: bool(
    "query.tracing.enabled",
    false,
    "Stores time, text, duration and user of each statement of the last day in the table _query_trace.",
    { reloadable: true },
  ),
  logsStatements: bool(
    "log.sql.query.progress.exe",
    false,
    "Logs the beginning and the end of each statement, with its text.",
  ),
  queryMemoryLimitBytes: size(
    "cairo.query.memory.limit",
    memoryShare(4, { maxMib: 1024 }),
    "Maximum memory of one query. A query that needs more fails.",
    { min: MIB, defaultSaid: "a quarter of the machine's memory, at most 1g", aliases: ["query.memory.limit"] },
  ),
  spillRoot: path(
    "query.spill.root",
    "tmp/spill",
    "Directory of the files that queries write when their memory is short, relative to the root. A start removes left-over files.",
  ),
  spillLimitBytes: size(
    "query.spill.limit",
    "16g",
    "Maximum size of all files in `query.spill.root`; 0: queries write no files and fail instead.",
  ),
  statementCacheSize: int(
    "cairo.statement.cache.size",
    1000,
    "Number of compiled statements to cache, by their text; 0: none.",
  ),
  useStatistics: bool(
    "query.statistics.enabled",
    true,
    "Answers count, sum, min and max from segment statistics if they are exact.",
  ),
};

/**
 * Half of a machine of up to 8 GiB. Of a larger one the pool has half, and the rest of the process and the system's file cache at least
 * 4 GiB.
 */
function memorySize(machine: Machine): string {
  const { memoryBytes } = machine;
  if (memoryBytes <= 8 * GIB) return memoryShare(2, { maxMib: MEMORY_BYTES_MAX / MIB })(machine);
  const poolBytes = Math.floor(Math.min(memoryBytes / 2, memoryBytes - 6 * GIB) / MIB) * MIB;
  return formatSize(Math.min(WORKING_BYTES + poolBytes, ALL_MEMORY_BYTES_MAX));
}

const heapSizeBytes = size(
  "cairo.memory.size",
  memorySize,
  "Memory shared by all threads: the pool, fresh rows, dictionaries and the working memory of queries. What is above 4095m holds only columns that the pool keeps in their stored form. Pages are allocated on first use.",
  {
    min: 64 * MIB,
    max: ALL_MEMORY_BYTES_MAX,
    defaultSaid: "half of the machine's memory; on machines of more than 8g 2047m more, but at most all but 4097m",
  },
);

/** Settings of the storage of tables. */
const storageSettings = {
  root: path("cairo.root", "db", "Directory of the database, relative to the root.", { aliases: ["cairo.root.dir"] }),
  commitMode: oneOf(
    "cairo.commit.mode",
    ["sync", "async", "nosync"],
    "sync",
    "`sync`: a change is acknowledged when it is on stable storage. `nosync`: acknowledged rows survive a killed process, but can be lost in a power failure. `async` means `nosync`.",
  ),
  heapSizeBytes,
  poolSizeBytes: size(
    "cairo.pool.size",
    (_, given) => {
      const memoryBytes = given(heapSizeBytes);
      return formatSize(Math.max(Math.ceil(memoryBytes / 2 / MIB) * MIB, memoryBytes - WORKING_BYTES));
    },
    "Memory for caching column data between queries.",
    {
      min: 16 * MIB,
      max: ALL_MEMORY_BYTES_MAX,
      defaultSaid: "half of `cairo.memory.size`, or all but 2047m if that is more",
    },
  ),
  tableCountMax: int(
    "cairo.max.tables",
    ({ memoryBytes }) => String(Math.floor(memoryBytes / MIB) * TABLES_A_MIB),
    "Maximum number of tables, with materialized views and tables of the server such as `_views`. Each takes some 10 KiB, and 28 KiB of cairo.memory.size while its last rows are in memory. Views do not count, but all together may have 256 characters for each of these tables, of which each view takes 1,000 besides its name and text.",
    { defaultSaid: `${TABLES_A_MIB} for each MiB of the machine's memory`, min: 100 },
  ),
  checkpointLogBytes: size(
    "cairo.checkpoint.log.size",
    "256m",
    "A checkpoint begins when the write-ahead log has grown by this much.",
    {
      min: MIB,
    },
  ),
  checkpointIntervalMs: ms(
    "cairo.checkpoint.interval",
    "60s",
    "A checkpoint also begins after this time, if there is something to write and no change for a second.",
  ),
  heldLogBytes: size(
    "cairo.log.held.size",
    "1g",
    "Maximum size of the write-ahead log that checkpoints keep only for readers that follow it. A reader that falls further behind has to begin anew.",
  ),
  encoding: oneOf(
    "cairo.column.encoding",
    ["auto", "raw"],
    "auto",
    "How columns are stored: encoded where that is smaller, or as they are. Both are read. With auto, columns that were stored raw or by older versions are encoded while the server is idle.",
  ),
  importRoot: path(
    "cairo.sql.copy.root",
    "import",
    "Directory from which read_parquet() and COPY FROM read, relative to the root.",
    {
      aliases: ["cairo.sql.copy.root.dir"],
    },
  ),
  exportRoot: path(
    "cairo.sql.copy.export.root",
    "export",
    "Directory to which COPY TO writes Parquet files, relative to the root.",
  ),
  backupRoot: path("cairo.backup.root", "backup", "Directory to which BACKUP DATABASE writes, relative to the root.", {
    aliases: ["cairo.sql.backup.root"],
  }),
};

/** Keys of QuestDB that are ignored here. */
const storageIgnored = [
  ignored("cairo.default.symbol.capacity", "256", "symbol tables grow as needed"),
  ignored("cairo.default.symbol.cache.flag", "true", "all symbols are in memory"),
  ignored("cairo.snapshot.instance.id", "", "a restored copy starts like any other root"),
];

const queryIgnored = [ignored("cairo.sql.jit.mode", "on", "every query is compiled")];

/** Settings for tests and measurements. */
const developmentSettings = {
  hasDevelopmentStatements: bool(
    "dev.mode.enabled",
    false,
    "Allows statements that exist only for tests, such as simulate_crash().",
  ),
  syncDelayMs: ms(
    "dev.sync.delay",
    "0",
    "Delays every sync of the writer by this time, to measure the effect of slow disks.",
  ),
  firstMemoryBytes: size(
    "dev.memory.first.size",
    "4095m",
    "Largest size of the memory that queries work in. What `cairo.memory.size` has beyond it is in further memories.",
    { min: 32 * MIB, max: MEMORY_BYTES_MAX },
  ),
  furtherMemoryBytes: size("dev.memory.further.size", "4095m", "Largest size of each further memory.", {
    min: MIB,
    max: MEMORY_BYTES_MAX,
  }),
};

/** All settings of the database. */
export const databaseSettings = {
  ...querySettings,
  ...storageSettings,
  ...developmentSettings,
  ...lineSettings,
  csv: csvSettings,
  readOnly: generalSettings.readOnly,
  access: accessSettings,
};

export const databaseSections: readonly Section[] = [
  { title: "Queries", settings: [querySettings, queryIgnored] },
  {
    title: "Storage",
    settings: [storageSettings, storageIgnored],
    check(config, refuse) {
      const { poolSizeBytes, heapSizeBytes } = storageSettings;
      const [pool, memory] = [config.get(poolSizeBytes), config.get(heapSizeBytes)];
      if (pool >= memory) {
        const expected = `less than ${heapSizeBytes.key} (${formatSize(memory)})`;
        refuse([poolSizeBytes, heapSizeBytes], `found ${formatSize(pool)}, expected ${expected}`);
      }
    },
  },
  { title: "Development", settings: [developmentSettings] },
];
