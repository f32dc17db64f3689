/** A statement in the body of a POST to /exec: a form, or JSON with parameter values. */
import type { ExecuteOptions, Prepared, Session } from "../../api.ts";
import { ProtocolError, SqlError, SQLSTATE } from "../../errors.ts";
import type { Value } from "../../types/mod.ts";
import type { Release } from "../large-statements.ts";
import { textParameter } from "../text-parameter.ts";
import type { Call } from "./contract.ts";
import { Parameters } from "./parameters.ts";
import { httpSettings } from "./settings.ts";

/** The body is not a valid statement. `status` is the status of the answer. */
export class StatementBodyError extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

/** A JSON value; numbers keep their digits. */
export type Argument = string | boolean | null | JsonNumber;

class JsonNumber {
  constructor(readonly text: string) {}
}

export interface StatementBody {
  /** The parameters of the URL, overridden by those of the body. */
  parameters: Parameters;
  args: Argument[];
}

const FORM = "application/x-www-form-urlencoded";
const JSON_TYPE = "application/json";
const utf8 = new TextDecoder("utf-8", { fatal: true });

/** Reads a statement and uses it. A large one waits for memory first. @throws {StatementBodyError} */
export async function withStatement<T>(call: Call, use: (body: StatementBody) => T | Promise<T>): Promise<T> {
  let release: Release | undefined;
  try {
    const body = await readStatement(call, async (sizeBytes) => {
      release = await call.options.largeStatements?.take(sizeBytes, call.request);
    });
    return await use(body);
  } finally {
    release?.();
  }
}

async function readStatement(
  { request, options }: Call,
  begin: (sizeBytes: number) => Promise<void>,
): Promise<StatementBody> {
  const type = (request.headers.get("content-type") ?? "").split(";")[0]!.trim().toLowerCase();
  if (type !== FORM && type !== JSON_TYPE) {
    throw new StatementBodyError(415, `found the content type '${type}', expected ${FORM} or ${JSON_TYPE}`);
  }
  const sizeMax = options.config.of(httpSettings).statementSizeMax;
  const bytes = await request.bytes(sizeMax, begin).catch((error) => {
    throw error instanceof ProtocolError ? new StatementBodyError(503, error.message) : error;
  });
  if (bytes === undefined) throw new StatementBodyError(413, `the body is longer than ${sizeMax} bytes`);
  const text = decode(bytes);
  const query = /\?(.*)$/s.exec(request.target)?.[1] ?? "";
  if (type === FORM) return { parameters: new Parameters(`${query}&${text}`), args: [] };
  const { args, fields } = readJson(text);
  return { parameters: new Parameters(`${query}&${fields}`), args };
}

function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new StatementBodyError(400, "the body is not UTF-8");
  }
}

function readJson(text: string): { args: Argument[]; fields: URLSearchParams } {
  let body: unknown;
  try {
    body = JSON.parse(text, keepDigits as (key: string, value: unknown) => unknown);
  } catch (error) {
    throw new StatementBodyError(400, `the body is not JSON: ${(error as Error).message}`);
  }
  if (typeof body !== "object" || body === null || Array.isArray(body) || body instanceof JsonNumber) {
    throw new StatementBodyError(
      400,
      'the body is not a JSON object such as {"query": "select $1", "parameters": [1]}',
    );
  }
  const { parameters = [], ...others } = body as Record<string, unknown>;
  if (typeof others.query !== "string") throw new StatementBodyError(400, "the body has no text named query");
  if (!Array.isArray(parameters)) throw new StatementBodyError(400, "parameters is not an array");
  const fields = new URLSearchParams();
  for (const [name, value] of Object.entries(others)) {
    if (!isArgument(value)) throw new StatementBodyError(400, `${name} is not a text, number or boolean`);
    if (value !== null) fields.set(name, textOf(value));
  }
  return { args: parameters.map(argumentOf), fields };
}

function keepDigits(_key: string, value: unknown, context: { source: string }): unknown {
  return typeof value === "number" ? new JsonNumber(context.source) : value;
}

const isArgument = (value: unknown): value is Argument =>
  value === null || typeof value === "string" || typeof value === "boolean" || value instanceof JsonNumber;

/** Arrays become the texts of arrays. */
function argumentOf(value: unknown, index: number): Argument {
  if (isArgument(value)) return value;
  if (Array.isArray(value)) return arrayText(value, index);
  throw new StatementBodyError(400, `parameter $${index + 1} is an object: expected a value or an array of numbers`);
}

function arrayText(array: unknown[], index: number): string {
  const parts = array.map((value) => {
    if (Array.isArray(value)) return arrayText(value, index);
    if (value === null || value instanceof JsonNumber) return value === null ? "null" : value.text;
    throw new StatementBodyError(400, `parameter $${index + 1} is an array of values other than numbers`);
  });
  return `[${parts.join(",")}]`;
}

const textOf = (value: string | boolean | JsonNumber): string =>
  value instanceof JsonNumber ? value.text : String(value);

export interface PreparedArguments {
  prepared: Prepared;
  values: Value[];
}

/**
 * Prepares a statement with its arguments. The statement determines their types. If it does not, as in `select $1`,
 * numbers and booleans keep their own.
 * @throws {SqlError}
 */
export function prepareWith(
  session: Session,
  query: string,
  args: readonly Argument[],
  options: Pick<ExecuteOptions, "signal" | "timeoutMs">,
): PreparedArguments | Promise<PreparedArguments> {
  const prepared = session.prepare(query, [], options);
  if (prepared instanceof Promise || args.length > 0) return withArguments(prepared, { session, query, args, options });
  expectCount(prepared, 0);
  return { prepared, values: [] };
}

function expectCount({ parameters }: Prepared, count: number): void {
  if (parameters.length === count) return;
  const message = `the statement has ${parameters.length} parameters: found ${count} values`;
  throw new SqlError(message, 0, SQLSTATE.protocolViolation);
}

async function withArguments(preparing: Prepared | Promise<Prepared>, { session, query, args, options }: {
  session: Session;
  query: string;
  args: readonly Argument[];
  options: Pick<ExecuteOptions, "signal" | "timeoutMs">;
}): Promise<PreparedArguments> {
  let prepared = await preparing;
  expectCount(prepared, args.length);
  const types = prepared.parameters.map((tag, index) => OPEN_TYPES.has(tag) ? ownType(args[index]!) ?? tag : tag);
  if (types.some((tag, index) => tag !== prepared.parameters[index])) {
    prepared = await session.prepare(query, types, options);
  }
  const values = args.map((arg, index) =>
    arg === null ? null : textParameter(textOf(arg), prepared.parameters[index]!, index + 1)
  );
  return { prepared, values };
}

/** Types that the binder gives to a parameter of undetermined type. */
const OPEN_TYPES = new Set(["STRING", "VARCHAR"]);

function ownType(arg: Argument): string | undefined {
  if (typeof arg === "boolean") return "BOOLEAN";
  if (arg instanceof JsonNumber) return /^-?\d+$/.test(arg.text) ? "LONG" : "DOUBLE";
}
