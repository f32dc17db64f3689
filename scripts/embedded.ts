/**
 * What a compiled executable carries besides the modules that main.ts imports: workers, which `new URL` names and no import
 * reaches, and files read at run time. A test holds this list against the tree.
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
