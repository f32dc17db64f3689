/** Checks every import against the structure in `docs/architecture.md`. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { typeNames } from "../src/types/mod.ts";
import { fromFileUrl } from "./paths.ts";

const SRC = fromFileUrl("../src/");

/** From top to bottom: a layer imports only layers below it. `wire` is at the top. */
const LAYERS = ["wire", "database", "sql", "engine", "storage", "access", "wasm", "types"];
/** All layers may use these. They import no other layers, except those before them in this list. */
const SHARED_LAYERS = ["config", "log", "metrics", "service", "auth"];

/**
 * Contracts: declarations that two layers share. Only they may be imported without `mod.ts` or against the direction.
 * The first lines of each describe it.
 */
const CONTRACTS = new Set([
  "api.ts",
  "assert.ts",
  "bytes.ts",
  "errors.ts",
  "nearest.ts",
  "paths.ts",
  "requirement.ts",
  "slow-senders.ts",
  "version.ts",
  "auth/oidc/algorithms.ts",
  "sql/ast.ts",
  "sql/plan.ts",
  "sql/functions/entry.ts",
  "storage/contract.ts",
  "storage/heap.ts",
  "engine/contract.ts",
  "engine/compiler/ir.ts",
  "engine/long-texts.ts",
]);
/**
 * The lowest layers: libraries of small files that are imported one by one, because a single module would load everything
 * in every worker.
 */
const OPEN_LAYERS = new Set(["types", "wasm"]);
/** Codecs run in the threads that have the rows. They are the only part of `wire` that lower layers use. */
const CODECS = new Set(["wire/encode/mod.ts", "wire/line/mod.ts", "wire/csv/mod.ts"]);
/** Layers within layers have their own mod.ts. */
const LAYER_MODULES = /(^|\/)mod\.ts$/;
/** Declarations of settings are loaded before anything else, so they import only `config` and each other. */
const isSettings = (path: string) => /\/settings\.ts$/.test(path) && !/^(?:config|command)\/|\/routes\//.test(path);
/** These combine several layers to threads and to the process. */
const ASSEMBLERS = new Set(["workers", "command"]);

interface Import {
  from: string;
  to: string;
  /** The import loads no code. */
  isOfTypes: boolean;
}

function* sourceFiles(directory = ""): Generator<string> {
  for (const entry of Deno.readDirSync(join(SRC, directory))) {
    const path = directory === "" ? entry.name : `${directory}/${entry.name}`;
    if (entry.isDirectory) yield* sourceFiles(path);
    else if (/\.ts$/.test(entry.name) && !isTest(path)) yield path;
  }
}

const isTest = (path: string) => /_test\.ts$|(^|\/)(testing|fake-|test-)/.test(path);

function imports(): Import[] {
  const found: Import[] = [];
  for (const from of sourceFiles()) {
    const text = Deno.readTextFileSync(join(SRC, from));
    for (const [, what, specifier] of text.matchAll(/^(?:import|export)\b([^;]*?)\bfrom\s+"(\.[^"]+)"/gm)) {
      if (specifier.endsWith("/deno.json")) continue; // data about the program, which belongs to no layer
      const to = join(from, "..", specifier).replaceAll("\\", "/");
      const names = what.replace(/[{}]/g, "").split(",").map((name) => name.trim()).filter((name) => name !== "");
      found.push({ from, to, isOfTypes: /^\s*type\b/.test(what) || names.every((name) => name.startsWith("type ")) });
    }
  }
  return found;
}

const layer = (path: string) => path.includes("/") ? path.slice(0, path.indexOf("/")) : "";
const say = ({ from, to }: Import) => `src/${from} imports src/${to}`;

Deno.test("layers import only lower layers", () => {
  const against = imports().filter(({ from, to }) => {
    const [fromLayer, toLayer] = [layer(from), layer(to)];
    if (fromLayer === toLayer || CONTRACTS.has(to) || CODECS.has(to) || isSettings(to) || ASSEMBLERS.has(fromLayer)) {
      return false;
    }
    if (SHARED_LAYERS.includes(fromLayer)) {
      return SHARED_LAYERS.indexOf(toLayer) < 0 || SHARED_LAYERS.indexOf(toLayer) >= SHARED_LAYERS.indexOf(fromLayer);
    }
    if (SHARED_LAYERS.includes(toLayer)) return false;
    const [fromIndex, toIndex] = [LAYERS.indexOf(fromLayer), LAYERS.indexOf(toLayer)];
    return fromIndex >= 0 && (toIndex < 0 || toIndex < fromIndex);
  });
  assert.deepEqual(against.map(say), []);
});

Deno.test("a layer is imported through its mod.ts", () => {
  const past = imports().filter(({ from, to }) =>
    layer(from) !== layer(to) && layer(to) !== "" && !OPEN_LAYERS.has(layer(to)) && !LAYER_MODULES.test(to) &&
    !CONTRACTS.has(to) &&
    !isSettings(to) && !ASSEMBLERS.has(layer(from))
  );
  assert.deepEqual(past.map(say), []);
});

/**
 * Strongly connected components of more than one file. Source: Tarjan, "Depth-first search and linear graph
 * algorithms", 1972.
 */
function circles(all: readonly Import[]): string[][] {
  const targets = new Map<string, string[]>();
  for (const { from, to } of all) targets.set(from, [...targets.get(from) ?? [], to]);
  const order = new Map<string, number>(), low = new Map<string, number>(), open: string[] = [], found: string[][] = [];
  const visit = (file: string) => {
    order.set(file, order.size);
    low.set(file, order.get(file)!);
    open.push(file);
    for (const to of targets.get(file) ?? []) {
      if (!order.has(to)) visit(to);
      if (open.includes(to)) low.set(file, Math.min(low.get(file)!, low.get(to)!));
    }
    if (low.get(file) !== order.get(file)) return;
    const component = open.splice(open.indexOf(file));
    if (component.length > 1) found.push(component.sort());
  };
  for (const file of targets.keys()) if (!order.has(file)) visit(file);
  return found.sort();
}

/** Directly or through others. Imports of types count too. */
Deno.test("no files import each other in a circle", () => {
  assert.deepEqual(circles(imports()), []);
});

Deno.test("contracts exist, and import only contracts and mod.ts files", () => {
  for (const path of CONTRACTS) assert.ok(Deno.statSync(join(SRC, path)).isFile, path);
  const past = imports().filter(({ from, to }) =>
    CONTRACTS.has(from) && !CONTRACTS.has(to) && !LAYER_MODULES.test(to) && !OPEN_LAYERS.has(layer(to)) &&
    layer(from) !== layer(to)
  );
  assert.deepEqual(past.map(say), []);
});

Deno.test("declarations of settings load nothing else", () => {
  const past = imports().filter(({ from, to, isOfTypes }) =>
    isSettings(from) && !isOfTypes && !isSettings(to) && to !== "config/mod.ts"
  );
  assert.deepEqual(past.map(say), []);
});

/** The files that a thread loads. */
function loaded(entry: string): Set<string> {
  const reached = new Set([entry]);
  const all = imports().filter(({ isOfTypes }) => !isOfTypes);
  for (const path of reached) for (const { from, to } of all) if (from === path) reached.add(to);
  return reached;
}

Deno.test("query workers do not load the SQL compiler, and the writer does not load the engine", () => {
  const layers = (entry: string, pattern: RegExp) => [...loaded(entry)].filter((path) => pattern.test(path));
  assert.ok(loaded("workers/exec.ts").has("sql/functions/mod.ts"), "the walk gets there");
  assert.deepEqual(layers("workers/exec.ts", /^sql\/(?:mod|bind|lexer|parser|tree-|binder|planner|statements)/), []);
  // The mailboxes of the query threads, by which the writer wakes them.
  assert.deepEqual(layers("workers/writer.ts", /^(?:sql|engine|database|wire)\//), ["engine/mailbox.ts"]);
});

/** The server loads it while its writer starts; health checks do without. */
Deno.test("commands do not load the database until they need it", () => {
  const layers = [...loaded("command/mod.ts")].filter((path) => /^(?:sql|engine|storage|database)\//.test(path));
  assert.ok(layers.includes("database/settings.ts"), "the walk gets there");
  assert.deepEqual(layers.filter((path) => LAYER_MODULES.test(path)), []);
});

/** V8 keeps the target of a new or read WeakRef until the thread returns to its event loop. */
Deno.test("the writer, which never returns to its event loop, uses no weak references", () => {
  const weak = [...loaded("workers/writer.ts")].filter((path) =>
    /\b(WeakRef|FinalizationRegistry)\b/.test(Deno.readTextFileSync(join(SRC, path)))
  );
  assert.deepEqual(weak, []);
});

Deno.test("the start's lock file lists no development tool", () => {
  const lock = JSON.parse(Deno.readTextFileSync(fromFileUrl("../deno.lock"))) as { npm?: Record<string, unknown> };
  const tools = /^(@duckdb|pg@|postgres@|@questdb|fast-check|playwright)/;
  assert.deepEqual(Object.keys(lock.npm ?? {}).filter((name) => tools.test(name)), []);
});

/** Files with a switch over types, and how many. Everything else asks the type's entry in `types/registry.ts`. */
const TYPE_SWITCHES: Readonly<Record<string, number>> = {
  // Loops over whole columns need other instructions for each layout.
  "engine/keys.ts": 1,
  "engine/operators/row-hashes.ts": 1,
  "engine/order.ts": 1,
  "sql/functions/value-table.ts": 1,
  // Parquet's own types, some of which have the names of ours.
  "engine/parquet/schema.ts": 1,
};

const TAGS = new Set(typeNames().map((name) => name.toUpperCase()));
Deno.test("types are asked, not told apart by switches", () => {
  const found: Record<string, number> = {};
  for (const path of sourceFiles()) {
    if (/^(?:types|console)\//.test(path)) continue;
    const text = Deno.readTextFileSync(join(SRC, path));
    for (const { 1: indent, 2: subject, index } of text.matchAll(/^( *)switch \((.*)\) \{$/gm)) {
      const body = text.slice(index, text.indexOf(`\n${indent}}`, index));
      const labels = [...body.matchAll(/\bcase "([^"]+)":/g)].map(([, label]) => label);
      const isOfTypes = labels.some((label) => TAGS.has(label)) || /layout/i.test(subject);
      if (isOfTypes) found[path] = (found[path] ?? 0) + 1;
    }
  }
  assert.deepEqual(found, TYPE_SWITCHES);
});
