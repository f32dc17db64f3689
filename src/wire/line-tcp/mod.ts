/**
 * Line protocol over TCP: a stream of lines without replies. What has arrived is committed whenever a read ends with whole lines;
 * a client learns of a fault by the closed connection and the log.
 */
import type { Database, Identity } from "../../door.ts";
import { LineError } from "../../errors.ts";
import type { Metrics } from "../../metrics/mod.ts";
import type { LinePrecision } from "../line/mod.ts";

export interface LineTcpOptions {
  hostname: string;
  /** 0 takes any free one. */
  port: number;
  database: Database;
  identity: Identity;
  /** Unit of row times. */
  precision: LinePrecision;
  connectionLimit: number;
  /** A connection without a line for so long is closed; 0: never. */
  idleTimeoutMs: number;
  lineSizeMax: number;
  /** Close the connection of a line at fault; otherwise only that line is left out. */
  disconnectOnError: boolean;
  log: { info(message: string): void; error(message: string): void };
  metrics?: Pick<Metrics, "wires">;
}

const LF = 0x0a;
const READ_BYTES = 1 << 18;

export interface LineTcpServer {
  port: number;
  connectionCount(): number;
  close(): Promise<void>;
}

export function startLineTcp(options: LineTcpOptions): LineTcpServer {
  const listener = Deno.listen({ hostname: options.hostname, port: options.port });
  const connections = new Map<Deno.Conn, Promise<void>>();
  const accepting = (async () => {
    for await (const connection of listener) {
      if (connections.size >= options.connectionLimit) {
        options.log.error(`connection refused: there are ${connections.size} already, which is the limit`);
        connection.close();
        continue;
      }
      const served = serve(connection, options).catch((error) =>
        options.log.error(`connection failed: ${(error as Error).message}`)
      ).finally(() => {
        connections.delete(connection);
        closeQuietly(connection);
      });
      connections.set(connection, served);
    }
  })();
  return {
    port: (listener.addr as Deno.NetAddr).port,
    connectionCount: () => connections.size,
    close: async () => {
      listener.close();
      await accepting;
      const served = [...connections.values()];
      for (const connection of connections.keys()) closeQuietly(connection);
      await Promise.all(served);
    },
  };
}

function closeQuietly(connection: Deno.Conn): void {
  try {
    connection.close();
  } catch {
    // it is closed already
  }
}

async function serve(connection: Deno.Conn, options: LineTcpOptions): Promise<void> {
  const peer = (connection.remoteAddr as Deno.NetAddr).hostname;
  let buffer = new Uint8Array(READ_BYTES), used = 0;
  for (;;) {
    if (used === buffer.length) {
      if (used > options.lineSizeMax) {
        throw new LineError(0, `a line of ${peer} is longer than ${options.lineSizeMax} bytes`);
      }
      const larger = new Uint8Array(buffer.length * 2);
      larger.set(buffer);
      buffer = larger;
    }
    const read = await readOrTimeOut(connection, buffer.subarray(used), options.idleTimeoutMs);
    if (read === undefined) return;
    options.metrics?.wires.line_tcp.bytesIn.inc(read);
    used += read;
    const end = buffer.lastIndexOf(LF, used - 1) + 1;
    if (end === 0) continue;
    if (!await writeAll(buffer.slice(0, end), peer, options)) return;
    buffer.copyWithin(0, end, used);
    used -= end;
  }
}

/** undefined at the end of the stream, and when nothing came for too long. */
async function readOrTimeOut(
  connection: Deno.Conn,
  into: Uint8Array,
  idleTimeoutMs: number,
): Promise<number | undefined> {
  const timer = idleTimeoutMs > 0 ? setTimeout(() => closeQuietly(connection), idleTimeoutMs) : undefined;
  try {
    return await connection.read(into) ?? undefined;
  } catch (error) {
    if (
      error instanceof Deno.errors.BadResource || error instanceof Deno.errors.Interrupted ||
      error instanceof Deno.errors.ConnectionReset
    ) return undefined;
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** Commits whole lines. At a line at fault, those before it are kept. False when the connection is to be closed. */
async function writeAll(lines: Uint8Array, peer: string, options: LineTcpOptions): Promise<boolean> {
  const { disconnectOnError, log, metrics } = options;
  for (let rest = lines; rest.length > 0;) {
    try {
      // Long texts are moved to the thread that parses them.
      await write(rest.slice(), options);
      return true;
    } catch (error) {
      if (!(error instanceof LineError) || error.line <= 0) throw error;
      metrics?.wires.line_tcp.lineErrors.inc();
      log.error(`line of ${peer} refused: ${error.message}`);
      const start = offsetOfLine(rest, error.line), end = offsetOfLine(rest, error.line + 1);
      if (start > 0) await write(rest.slice(0, start), options);
      if (disconnectOnError) return false;
      rest = rest.subarray(end);
    }
  }
  return true;
}

async function write(lines: Uint8Array, { database, precision, identity, metrics }: LineTcpOptions): Promise<void> {
  const { rows } = await database.writeLines(lines, precision, identity);
  metrics?.wires.line_tcp.rowsIn.inc(rows);
}

/** Where line `line`, counted from 1, begins. */
function offsetOfLine(lines: Uint8Array, line: number): number {
  let at = 0;
  for (let k = 1; k < line; k++) {
    const end = lines.indexOf(LF, at);
    if (end < 0) return lines.length;
    at = end + 1;
  }
  return at;
}
