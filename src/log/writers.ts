/** The writer classes of log.conf: their properties, and how they are opened. A new class is one entry here. */
import { dirname, isAbsolute, join, resolve } from "node:path";
import { ConfigError } from "../errors.ts";
import { parseDuration, parseSize } from "../config/mod.ts";
import { AlertOutput, type AlertSettings, type AlertTarget } from "./alerts.ts";
import { type AlertTemplate, parseAlertTemplate } from "./alert-template.ts";
import { consoleOutput, fileOutput, type Location, parseLocation, ROLL_EVERY, RollingOutput } from "./files.ts";
import type { Output } from "./queue.ts";

/** The configured properties of a writer. */
export interface WriterProperties {
  /** `w.stdout` */
  readonly prefix: string;
  /** Undefined: not set. */
  get(property: string): string | undefined;
  /** Collects faults. If there are any, nothing is opened. */
  readonly faults: ConfigError[];
}

export interface WriterSurroundings {
  root: string;
  /** `${log.dir}` */
  logDirectory: string;
  /** `<root>/log`, which the start creates. */
  ownLogDirectory: string;
  env: Record<string, string>;
  nowMicros(): number;
  stdout: { write(bytes: Uint8Array): Promise<number> };
  /** The shipped alert template. */
  alertTemplate: string;
  /** Version of the product. */
  version: string;
  /** In [0, 1). */
  random(): number;
}

export interface WriterClass {
  /** Properties in addition to class, level, scope and bufferSize. */
  readonly properties: readonly string[];
  readonly required: readonly string[];
  /** The writer ignores ADVISORY, even if its level includes it, because ADVISORY reports no fault. */
  readonly faultsOnly?: boolean;
  /** Reads and checks the properties. The function that it returns opens the files and may throw {ConfigError}. */
  prepare(properties: WriterProperties, surroundings: WriterSurroundings): () => Output;
}

const MIB = 2 ** 20;
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
      const location = locationOf(properties, surroundings);
      return opening(properties, () => fileOutput(location.path(surroundings.nowMicros())));
    },
  },
  LogRollingFileWriter: {
    properties: ["location", "rollEvery", "rollSize", "lifeDuration", "sizeLimit", "spinBeforeFlush"],
    required: ["location"],
    prepare: (properties, surroundings) => {
      const rollEvery = (properties.get("rollEvery") ?? "NONE").toUpperCase() as (typeof ROLL_EVERY)[number];
      if (!ROLL_EVERY.includes(rollEvery)) refuse(properties, "rollEvery", `one of ${ROLL_EVERY.join(", ")}`);
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
  LogAlertSocketWriter: {
    properties: [
      "alertTargets",
      "defaultAlertHost",
      "defaultAlertPort",
      "inBufferSize",
      "outBufferSize",
      "reconnectDelay",
      "location",
    ],
    required: ["level"],
    faultsOnly: true,
    prepare: (properties, surroundings) => {
      const targets = alertTargetsOf(properties);
      const reconnectDelayMs = parseDuration(properties.get("reconnectDelay") || "250", "ms") ??
        refuse(properties, "reconnectDelay", "a duration (milliseconds, or with us, ms, s, m, h, d)") ?? 0;
      const settings: AlertSettings = {
        targets,
        template: alertTemplateOf(properties, surroundings),
        messageBytesMax: sizeOf(properties, "inBufferSize", 2 * MIB),
        queuePath: join(surroundings.ownLogDirectory, `${properties.prefix.slice("w.".length)}-alerts.queue`),
        queueBytesMax: sizeOf(properties, "outBufferSize", 4 * MIB),
        reconnectDelayMs,
        firstTarget: Math.floor(surroundings.random() * targets.length),
      };
      return () => {
        try {
          return new AlertOutput(settings);
        } catch (error) {
          if (error instanceof ConfigError) throw error;
          const key = `${properties.prefix}.class`;
          throw new ConfigError(
            key,
            `${properties.prefix}: cannot store alerts that wait: ${(error as Error).message}`,
          );
        }
      };
    },
  },
};

/** The properties of all classes. */
export const allProperties = (): string[] => Object.values(classes).flatMap(({ properties }) => properties);

export const classNames = (): string[] => Object.keys(classes).map((known) => CLASS_PREFIXES[0] + known);

export function writerClass(name: string): WriterClass | undefined {
  for (const classPrefix of CLASS_PREFIXES) {
    if (name.startsWith(classPrefix) && Object.hasOwn(classes, name.slice(classPrefix.length))) {
      return classes[name.slice(classPrefix.length)];
    }
  }
  return undefined;
}

export function refuse(properties: WriterProperties, property: string, expected: string): undefined {
  properties.faults.push(fault(properties, property, expected));
}

function fault(properties: WriterProperties, property: string, expected: string): ConfigError {
  const key = `${properties.prefix}.${property}`;
  const found = properties.get(property);
  return new ConfigError(key, `${key}: found ${found === undefined ? "nothing" : `"${found}"`}, expected ${expected}`);
}

export function sizeOf(properties: WriterProperties, property: string, byDefault: number): number {
  const text = properties.get(property);
  if (text === undefined || text === "") return byDefault;
  return parseSize(text) ?? refuse(properties, property, "a size (bytes, or with k, m, g)") ?? byDefault;
}

const ALERT_TARGETS_MAX = 12;

/** Host and port are both optional: `a:1`, `a`, `:1`. An empty list means the default target. */
function alertTargetsOf(properties: WriterProperties): AlertTarget[] {
  const host = properties.get("defaultAlertHost") || "127.0.0.1";
  const port = Number(properties.get("defaultAlertPort") || "9093");
  if (!isPort(port)) refuse(properties, "defaultAlertPort", "a port");
  const texts = (properties.get("alertTargets") ?? "").replace(/^"(.*)"$/, "$1").split(",").map((text) => text.trim())
    .filter((text) => text !== "");
  if (texts.length > ALERT_TARGETS_MAX) {
    refuse(properties, "alertTargets", `at most ${ALERT_TARGETS_MAX} targets, not ${texts.length}`);
  }
  if (texts.length === 0) return [{ hostname: host, port }];
  return texts.flatMap((text) => {
    const match = /^(?:\[([^\]]+)\]|([^:\s]*))(?::(\d+))?$/.exec(text);
    const target = match &&
      { hostname: match[1] || match[2] || host, port: match[3] === undefined ? port : Number(match[3]) };
    if (target && isPort(target.port)) return target;
    refuse(properties, "alertTargets", `host:port, separated by commas, not ${text}`);
    return [];
  });
}

const isPort = (port: number) => Number.isInteger(port) && port > 0 && port < 65_536;

/** An absolute path, or one relative to the root. */
function alertTemplateOf(
  properties: WriterProperties,
  { root, alertTemplate, env, version }: WriterSurroundings,
): AlertTemplate {
  const location = properties.get("location") ?? "";
  const path = isAbsolute(location) ? location : join(root, location);
  try {
    return parseAlertTemplate(location === "" ? alertTemplate : Deno.readTextFileSync(path), env, version);
  } catch (error) {
    refuse(properties, "location", `a valid JSON template (${(error as Error).message})`);
    return parseAlertTemplate("[]", env, version);
  }
}

const DAY_MS = 86_400_000;

/** `m` means minutes and `M` months, as in QuestDB's rolling writer. */
function lifeDurationOf(properties: WriterProperties): number {
  const text = properties.get("lifeDuration");
  if (text === undefined || text === "") return 0;
  const calendar = /^(\d+)([My])$/.exec(text);
  const durationMs = calendar
    ? Number(calendar[1]) * (calendar[2] === "M" ? 30 : 365) * DAY_MS
    : /^\d+[smhdw]$/.test(text)
    ? parseDuration(text, "ms")
    : undefined;
  return durationMs ?? refuse(properties, "lifeDuration", "a duration with s, m, h, d, w, M or y") ?? 0;
}

function locationOf(
  properties: WriterProperties,
  { logDirectory, ownLogDirectory, env, nowMicros }: WriterSurroundings,
): Location {
  const text = properties.get("location") ?? "";
  const none: Location = { path: () => "", pattern: /^$/ };
  let location: ReturnType<typeof parseLocation>;
  try {
    location = parseLocation(text, { ...env, "log.dir": logDirectory });
  } catch (error) {
    refuse(properties, "location", `a path (${(error as Error).message})`);
    return none;
  }
  if ("unknown" in location) {
    const expected = `log.dir, date:… or an environment variable in the braces, not ${location.unknown}`;
    refuse(properties, "location", expected);
    return none;
  }
  const directory = dirname(location.path(nowMicros()));
  if (text !== "" && resolve(directory) !== resolve(ownLogDirectory) && !isDirectory(directory)) {
    refuse(properties, "location", "a file in an existing directory");
  }
  return location;
}

function isDirectory(path: string): boolean {
  try {
    return Deno.statSync(path).isDirectory;
  } catch {
    return false;
  }
}

function opening(properties: WriterProperties, open: () => Output): () => Output {
  return () => {
    try {
      return open();
    } catch (error) {
      if (error instanceof ConfigError) throw error;
      throw fault(properties, "location", `a file that can be opened (${(error as Error).message})`);
    }
  };
}
