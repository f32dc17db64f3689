/**
 * The memory suite: loads trades from Parquet, answers the queries of the benchmark and exports rows, while the resident memory of the server
 * is sampled. Fails if it exceeds `cairo.memory.size` + 400 MiB, or the memory of the machine that the server is told to be on.
 */
import { existsSync } from "node:fs";
import { Config } from "../src/config/mod.ts";
import { databaseSettings } from "../src/database/settings.ts";
import { SECTIONS } from "../src/command/settings.ts";
import { residentBytes } from "../tests/memory.ts";
import { startServer, type TestServer } from "./server.ts";
import { QUERIES } from "./queries.ts";
import { CREATE_TRADES, gapMicrosOf, TRADES_FILE, writeTradesParquet } from "./trades.ts";

const MIB = 2 ** 20;
/** Resident memory that the process may have besides the shared memory. */
export const OTHER_BYTES_MAX = 400 * MIB;
const SAMPLE_MS = 100;
/** Rows of a day do not depend on their number. */
const GAP_MICROS = gapMicrosOf(50_000_000);

export interface MemoryOptions {
  rowCount: number;
  /** Memory of the machine that the server takes its defaults from; by default, that of this machine. */
  machineBytes?: number;
  /** Settings other than the defaults. */
  env?: Record<string, string>;
  /** A directory that is removed by the caller. */
  work: string;
  /** Seconds without work before the last look. */
  idleSeconds: number;
  onStage?: (stage: MemoryStage) => void;
}

/** What was resident in a stage. */
export interface MemoryStage {
  name: string;
  peakBytes: number;
  /** Resident at the end of the stage, without the shared memory. */
  otherBytes: number;
  seconds: number;
}

export interface MemoryReport {
  sharedBytes: number;
  boundBytes: number;
  stages: MemoryStage[];
  /** By memory_metrics(), after the idle time. */
  idle: Record<string, number>;
}

/** Runs the stages, each of which has to succeed. */
export async function measureMemory(options: MemoryOptions): Promise<MemoryReport> {
  const { rowCount, work, env = {}, machineBytes, onStage } = options, root = `${work}/memory-${rowCount}`;
  const file = `${root}/import/${TRADES_FILE}`;
  await Deno.mkdir(`${root}/import`, { recursive: true });
  // Writing takes longer than all else, so that a file of a former run, or of another program, is used.
  if (!existsSync(file)) await writeTradesParquet(rowCount, file, GAP_MICROS);
  const defaults = machineBytes === undefined ? {} : defaultsFor(machineBytes);
  await using server = await startServer({ root, env: { SVC_QUERY_TIMEOUT: "30m", ...defaults, ...env } });
  const { pid } = server.process;
  const sampler = new Sampler(pid);
  try {
    const parameters = new Map((await rowsOf(server, "show parameters")).map((row) => [row[0], row[2]]));
    const sharedBytes = bytesOf(String(parameters.get("cairo.memory.size")));
    const stages: MemoryStage[] = [];
    const stage = async (name: string, work: () => Promise<unknown>) => {
      sampler.peakBytes = 0;
      const start = performance.now();
      await work();
      const parts = await partsOf(server), seconds = (performance.now() - start) / 1000;
      sampler.sample();
      const stage = { name, peakBytes: sampler.peakBytes, otherBytes: parts.RSS - parts.RSS_SHARED, seconds };
      stages.push(stage);
      onStage?.(stage);
    };
    await stage("load from Parquet", () => rowsOf(server, CREATE_TRADES));
    for (const { name, sundial } of QUERIES) {
      await stage(name, async () => {
        for (let round = 0; round < 3; round++) await rowsOf(server, sundial);
      });
    }
    const exported = `select * from trades limit ${Math.min(5_000_000, rowCount / 2)}`;
    for (const format of ["csv", "parquet"]) {
      await stage(`export as ${format}`, () => download(server, exported, format));
    }
    await stage(`${options.idleSeconds} s without work`, () => sleep(1000 * options.idleSeconds));
    const boundBytes = Math.min(sharedBytes + OTHER_BYTES_MAX, machineBytes ?? Infinity);
    return { sharedBytes, boundBytes, stages, idle: await partsOf(server) };
  } finally {
    sampler.stop();
  }
}

/** What exceeds its bound, one sentence each. */
export function exceeded({ boundBytes, stages }: MemoryReport): string[] {
  return stages.filter(({ peakBytes }) => peakBytes > boundBytes).map(({ name, peakBytes }) =>
    `${name}: ${mebibytes(peakBytes)} MiB resident, more than ${mebibytes(boundBytes)}`
  );
}

export async function memorySuite(options: MemoryOptions): Promise<void> {
  console.log(`\n${options.rowCount} trades; MiB: the peak, and what is resident at the end besides the shared memory`);
  const report = await measureMemory({
    ...options,
    onStage: ({ name, peakBytes, otherBytes, seconds }) => {
      const [peak, other] = [peakBytes, otherBytes].map((bytes) => mebibytes(bytes).padStart(6));
      console.log(`${name.padEnd(30)} ${peak} ${other} ${seconds.toFixed(1).padStart(7)} s`);
    },
  });
  console.log(Object.entries(report.idle).map(([tag, bytes]) => `${tag} ${mebibytes(bytes)}`).join(", "));
  const faults = exceeded(report);
  if (faults.length > 0) throw new Error(faults.join("\n"));
  console.log(
    `cairo.memory.size ${mebibytes(report.sharedBytes)} MiB; never more than ${
      mebibytes(report.boundBytes)
    } MiB resident`,
  );
}

/** The settings that a server chooses by default on a machine with so much memory. */
function defaultsFor(memoryBytes: number): Record<string, string> {
  const config = new Config({
    root: ".",
    sections: SECTIONS,
    env: {},
    machine: { cores: navigator.hardwareConcurrency, memoryBytes, hostName: "box" },
    readFile: () => "",
  });
  const { heapSizeBytes, poolSizeBytes, queryMemoryLimitBytes } = databaseSettings;
  return {
    SVC_CAIRO_MEMORY_SIZE: String(config.get(heapSizeBytes)),
    SVC_CAIRO_POOL_SIZE: String(config.get(poolSizeBytes)),
    SVC_CAIRO_QUERY_MEMORY_LIMIT: String(config.get(queryMemoryLimitBytes)),
  };
}

class Sampler {
  peakBytes = 0;
  private readonly timer = setInterval(() => this.sample(), SAMPLE_MS);

  constructor(private readonly pid: number) {}

  sample(): void {
    this.peakBytes = Math.max(this.peakBytes, residentBytes(this.pid));
  }

  stop(): void {
    clearInterval(this.timer);
  }
}

async function rowsOf(server: TestServer, sql: string): Promise<unknown[][]> {
  const { error, dataset } = await server.exec(sql);
  if (error) throw new Error(`${sql}: ${error}`);
  return dataset ?? [];
}

async function partsOf(server: TestServer): Promise<Record<string, number>> {
  return Object.fromEntries(await rowsOf(server, "select * from memory_metrics()"));
}

async function download(server: TestServer, query: string, fmt: string): Promise<void> {
  const reply = await fetch(`${server.http}/exp?${new URLSearchParams({ query, fmt })}`);
  if (!reply.ok) throw new Error(await reply.text());
  for await (const _ of reply.body!);
}

function bytesOf(text: string): number {
  const [, digits, unit] = /^(\d+)([kmg]?)$/.exec(text)!;
  return Number(digits) * { "": 1, k: 2 ** 10, m: MIB, g: 2 ** 30 }[unit]!;
}

const sleep = (ms: number) => new Promise((done) => setTimeout(done, ms));
const mebibytes = (bytes: number) => (bytes / MIB).toFixed(0);
