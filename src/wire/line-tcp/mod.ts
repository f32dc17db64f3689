/**
 * Line protocol over TCP: a stream of lines without replies. Complete lines are committed after each read. A client learns of an
 * error only by the closed connection and the log.
 */
import type { Database } from "../../api.ts";
import { LineError } from "../../errors.ts";
import { shownAddress, shownText } from "../../log/mod.ts";
import type { Metrics } from "../../metrics/mod.ts";
import { offsetOfLine } from "../line/mod.ts";
import type { Values } from "../../config/mod.ts";
import { acceptAll } from "../accept.ts";
import type { ByteConnection } from "../byte-connection.ts";
import { type Certificate, oneWay } from "../tls/mod.ts";
import type { lineTcpSettings } from "./settings.ts";

export interface LineTcpOptions
  extends Values<Omit<typeof lineTcpSettings, "enabled" | "address" | "authPath" | "asksWho">> {
  hostname: string;
  /** 0 selects any free port. */
  port: number;
  database: Database;
  /** Undefined if TLS is off. */
  certificate?: Pick<Certificate, "secure">;
  log: { info(message: string): void; error(message: string): void; debug?(message: () => string): void };
  metrics?: Pick<Metrics, "wires">;
}

const LF = 0x0a;
const READ_BYTES = 1 << 18;
/** Longer timeouts overflow the timer, which would then fire immediately. */
const TIMER_MAX_MS = 2 ** 31 - 1;

export interface LineTcpServer {
  port: number;
  connectionCount(): number;
  close(): Promise<void>;
}

export function startLineTcp(options: LineTcpOptions): LineTcpServer {
  const listener = Deno.listen({ hostname: options.hostname, port: options.port });
  const connections = new Map<ByteConnection, Promise<void>>();
  let isClosing = false;
  const welcome = (accepted: Deno.Conn) => {
    if (connections.size >= options.connectionLimit) {
      options.log.error(`connection refused: ${connections.size} are open already, which is the limit`);
      return closeQuietly(accepted);
    }
    const address = shownAddress(accepted.remoteAddr);
    const secured = options.certificate?.secure(oneWay(accepted));
    const connection = secured ?? accepted;
    const serving = secured === undefined ? serve(connection, options) : secured.handshake.then(
      () => serve(connection, options),
      ({ message }) => options.log.info(`turned away [client=${address}, msg=${shownText(message)}]`),
    );
    const served = serving.catch((error) =>
      options.log.error(`connection of ${address} failed: ${shownText((error as Error).message)}`)
    ).finally(() => {
      connections.delete(connection);
      closeQuietly(connection);
      options.log.debug?.(() => `disconnected [client=${address}, connections=${connections.size}]`);
    });
    connections.set(connection, served);
    options.log.debug?.(() => `connected [client=${address}, connections=${connections.size}]`);
  };
  const accepting = acceptAll(listener, {
    welcome,
    failed: (error) => options.log.error(`accepting a client failed: ${error}`),
    isClosing: () => isClosing,
  });
  return {
    port: (listener.addr as Deno.NetAddr).port,
    connectionCount: () => connections.size,
    close: async () => {
      isClosing = true;
      listener.close();
      await accepting;
      const served = [...connections.values()];
      for (const connection of connections.keys()) closeQuietly(connection);
      await Promise.all(served);
    },
  };
}

function closeQuietly(connection: ByteConnection): void {
  try {
    connection.close();
  } catch {
    // already closed
  }
}

async function serve(connection: ByteConnection, options: LineTcpOptions): Promise<void> {
  const peer = (connection.remoteAddr as Deno.NetAddr).hostname;
  let buffer = new Uint8Array(READ_BYTES), used = 0;
  for (;;) {
    const read = await readOrTimeOut(connection, buffer.subarray(used), options.idleTimeoutMs);
    if (read === undefined) {
      if (used > 0) {
        options.log.error(`${peer} disconnected in the middle of a line, of which ${used} bytes are dropped`);
      }
      return;
    }
    options.metrics?.wires.line_tcp.bytesIn.inc(read);
    const fresh = used;
    used += read;
    const end = buffer.subarray(fresh, used).lastIndexOf(LF) + 1;
    if (end > 0) {
      const taken = await writeAll(buffer.subarray(0, fresh + end), peer, options);
      if (taken === undefined) return;
      buffer.copyWithin(0, taken, used);
      used -= taken;
    }
    if (used > options.lineSizeMax) {
      throw new LineError(0, `a line of ${peer} is longer than ${options.lineSizeMax} bytes`);
    }
    if (used > buffer.length / 2) {
      const larger = new Uint8Array(buffer.length * 2);
      larger.set(buffer.subarray(0, used));
      buffer = larger;
    }
  }
}

/** Returns undefined at the end of the stream and after a time-out. */
async function readOrTimeOut(
  connection: ByteConnection,
  into: Uint8Array,
  idleTimeoutMs: number,
): Promise<number | undefined> {
  const isTimed = idleTimeoutMs > 0 && idleTimeoutMs <= TIMER_MAX_MS;
  const timer = isTimed ? setTimeout(() => closeQuietly(connection), idleTimeoutMs) : undefined;
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

/**
 * Commits lines and returns the number of bytes consumed. Lines before a bad one are kept. Returns undefined if the
 * connection must be closed. A last line whose value contains a line feed may be incomplete; it waits for the rest.
 */
async function writeAll(lines: Uint8Array, peer: string, options: LineTcpOptions): Promise<number | undefined> {
  const { disconnectOnError, showsLines, log, metrics } = options;
  for (let done = 0; done < lines.length;) {
    const rest = lines.subarray(done);
    try {
      const taken = await write(rest, options);
      if (taken === 0) return done;
      done += taken;
    } catch (error) {
      if (!(error instanceof LineError) || error.line <= 0) throw error;
      const start = offsetOfLine(rest, error.line);
      for (let before = 0; before < start;) before += await write(rest.subarray(before, start), options);
      metrics?.wires.line_tcp.lineErrors.inc();
      const shown = showsLines && error.text !== undefined ? `: ${shownText(error.text)}` : "";
      log.error(`line of ${peer} refused: ${shownText(error.message)}${shown}`);
      if (disconnectOnError) return undefined;
      done += offsetOfLine(rest, error.line + 1);
    }
  }
  return lines.length;
}

/**
 * Returns the number of bytes consumed. The lines are copied, because long texts are transferred to the thread that
 * parses them.
 */
async function write(lines: Uint8Array, { database, precision, metrics }: LineTcpOptions): Promise<number> {
  const { rows, doneBytes } = await database.takeLines(lines.slice(), precision);
  metrics?.wires.line_tcp.rowsIn.inc(rows);
  return doneBytes;
}
