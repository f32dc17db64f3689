import { dateFormat } from "./dates.ts";

/** Variables that have the value GLOBAL if the environment does not set them. */
const GLOBAL_NAMES = ["CLUSTER_NAME", "ORGID", "NAMESPACE", "INSTANCE_NAME"];

export interface AlertTemplate {
  /** Returns the body of a request. */
  fill(message: string, timeMicros: number): string;
}

/**
 * Replaces `${ALERT_MESSAGE}`, `${date: pattern}`, `${SVC_VERSION}`, `${CLUSTER_NAME}`, `${ORGID}`, `${NAMESPACE}`,
 * `${INSTANCE_NAME}` (GLOBAL if not set) and any other environment variable; other braces stay. Values are escaped as
 * JSON strings.
 * @throws {SyntaxError} if the result is not JSON.
 */
export function parseAlertTemplate(
  text: string,
  env: Record<string, string | undefined>,
  version: string,
): AlertTemplate {
  const constants: Record<string, string | undefined> = { SVC_VERSION: version };
  for (const name of GLOBAL_NAMES) constants[name] = "GLOBAL";
  type Part = string | ((message: string, timeMicros: number) => string);
  const parts: Part[] = [];
  let at = 0;
  for (const match of text.matchAll(/\$\{\s*(?:date:([^}]*)|(\w+))\s*\}/g)) {
    const part = partOf(match[1], match[2]!);
    if (part === undefined) continue;
    parts.push(text.slice(at, match.index), part);
    at = match.index + match[0].length;
  }
  parts.push(text.slice(at));
  const fill = (message: string, timeMicros: number) =>
    parts.map((part) => typeof part === "string" ? part : part(message, timeMicros)).join("");
  JSON.parse(fill('a "message"', 0));
  return { fill };

  function partOf(datePattern: string | undefined, name: string): Part | undefined {
    if (datePattern !== undefined) {
      const format = dateFormat(datePattern.trim(), "Z", "en", "");
      return (_, timeMicros) => escapeJson(format(timeMicros));
    }
    if (name === "ALERT_MESSAGE") return (message) => escapeJson(message);
    const value = env[name] ?? constants[name];
    return value === undefined ? undefined : escapeJson(value);
  }
}

const escapeJson = (text: string) => JSON.stringify(text).slice(1, -1);
