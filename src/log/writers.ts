/** The writer classes that log.conf can name: their properties, and how each is opened. A new class is one entry here. */
import { ConfigError } from "../errors.ts";
import { parseDuration, parseSize } from "../config/mod.ts";
import { consoleOutput, fileOutput, type Location, parseLocation, ROLL_EVERY, RollingOutput } from "./files.ts";
import type { Output } from "./queue.ts";

/** What a writer is opened with; reading a property marks its fault with the property's key. */
export interface WriterProperties {
  /** `w.stdout` */
  readonly prefix: string;
  /** Undefined: not set. */
  get(property: string): string | undefined;
}

export interface WriterSurroundings {
  root: string;
  logDirectory: string;
  env: Record<string, string>;
  nowMicros(): number;
  stdout: { write(bytes: Uint8Array): Promise<number> };
}

export interface WriterClass {
  /** Besides class, level, scope and bufferSize. */
  readonly properties: readonly string[];
  readonly required: readonly string[];
  /** Reads and checks the properties; what it returns opens the files. */
  prepare(properties: WriterProperties, surroundings: WriterSurroundings): () => Output;
}

const CLASS_PREFIXES = ["io.service.log.", "io.questdb.log.", ""];

const classes: Record<string, WriterClass> = {
  LogConsoleWriter: {
    properties: [],
    required: [],
    prepare: (_, { stdout }) => () => consoleOutput(stdout),
  },
  LogFileWriter: {
    properties: ["location"],
    required: ["location"],
    prepare: (properties, surroundings) => {
      const path = locationOf(properties, surroundings).path(surroundings.nowMicros());
      return opening(properties, () => fileOutput(path));
    },
  },
  LogRollingFileWriter: {
    properties: ["location", "rollEvery", "rollSize", "lifeDuration", "sizeLimit", "spinBeforeFlush"],
    required: ["location"],
    prepare: (properties, surroundings) => {
      const rollEvery = (properties.get("rollEvery") ?? "NONE").toUpperCase() as (typeof ROLL_EVERY)[number];
      if (!ROLL_EVERY.includes(rollEvery)) throw fault(properties, "rollEvery", `one of ${ROLL_EVERY.join(", ")}`);
      const rolling = {
        location: locationOf(properties, surroundings),
        rollEvery,
        rollSize: sizeOf(properties, "rollSize", 0),
        lifeDurationMs: lifeDurationOf(properties),
        sizeLimit: sizeOf(properties, "sizeLimit", 0),
      };
      return opening(properties, () => new RollingOutput(rolling, surroundings.nowMicros()));
    },
  },
};

/** @throws {ConfigError} at the writer's `class`. */
export function writerClass(prefix: string, name: string): WriterClass {
  for (const classPrefix of CLASS_PREFIXES) {
    if (name.startsWith(classPrefix) && Object.hasOwn(classes, name.slice(classPrefix.length))) {
      return classes[name.slice(classPrefix.length)];
    }
  }
  const known = Object.keys(classes).map((known) => CLASS_PREFIXES[0] + known).join(", ");
  throw new ConfigError(`${prefix}.class`, `${prefix}.class: found "${name}", expected one of ${known}`);
}

export function fault(properties: WriterProperties, property: string, expected: string): ConfigError {
  const key = `${properties.prefix}.${property}`;
  const found = properties.get(property);
  return new ConfigError(key, `${key}: found ${found === undefined ? "nothing" : `"${found}"`}, expected ${expected}`);
}

export function sizeOf(properties: WriterProperties, property: string, byDefault: number): number {
  const text = properties.get(property);
  if (text === undefined || text === "") return byDefault;
  const bytes = parseSize(text);
  if (bytes === undefined) throw fault(properties, property, "a size (bytes, or with k, m, g)");
  return bytes;
}

const DAY_MS = 86_400_000;

/** Here `m` is minutes and `M` months, as in QuestDB's rolling writer. */
function lifeDurationOf(properties: WriterProperties): number {
  const text = properties.get("lifeDuration");
  if (text === undefined || text === "") return 0;
  const calendar = /^(\d+)([My])$/.exec(text);
  const durationMs = calendar
    ? Number(calendar[1]) * (calendar[2] === "M" ? 30 : 365) * DAY_MS
    : parseDuration(text, "ms");
  if (durationMs === undefined) throw fault(properties, "lifeDuration", "a duration with s, m, h, d, w, M or y");
  return durationMs;
}

function locationOf(properties: WriterProperties, { logDirectory, env }: WriterSurroundings): Location {
  const text = properties.get("location") ?? "";
  let location: ReturnType<typeof parseLocation>;
  try {
    location = parseLocation(text, { ...env, "log.dir": logDirectory });
  } catch (error) {
    throw fault(properties, "location", `a path (${(error as Error).message})`);
  }
  if ("unknown" in location) {
    throw fault(
      properties,
      "location",
      `log.dir, date:… or an environment variable in the braces, not ${location.unknown}`,
    );
  }
  return location;
}

function opening(properties: WriterProperties, open: () => Output): () => Output {
  return () => {
    try {
      return open();
    } catch (error) {
      throw fault(properties, "location", `a file that can be opened (${(error as Error).message})`);
    }
  };
}
