/**
 * Files that a compiled executable needs in addition to the modules that main.ts imports: workers, which are named by `new URL` and not
 * imported, and files read at run time. A test compares this list with the sources.
 */
export const EMBEDDED: readonly string[] = [
  "conf/alert-manager-tpl.json",
  "conf/log.conf",
  "conf/server.conf",
  "import/trades.parquet",
  "src/wire/health/worker.ts",
  "src/workers/exec.ts",
  "src/workers/planner.ts",
  "src/workers/writer.ts",
];
