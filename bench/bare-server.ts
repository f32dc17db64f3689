/**
 * The least that a server on Deno can do: Deno.serve for HTTP, and Deno.listen for the PostgreSQL protocol. It sends as many bytes as
 * Sundial sends to `select 1`, reads nothing of what it is asked but where a PostgreSQL message ends, and prints its two ports.
 *
 * With `--hand-over`, it hands each PostgreSQL request of 2 KB to a worker in shared memory, and sends when the worker has answered: the least that
 * a second thread can cost.
 */
import { ANSWER_BYTES, REQUEST_BYTES, WORD } from "./bare-words.ts";

const http = Deno.serve(
  { hostname: "127.0.0.1", port: 0, onListen: () => {} },
  () => new Response(new Uint8Array(110), { headers: [["transfer-encoding", "chunked"]] }),
);
const pg = Deno.listen({ hostname: "127.0.0.1", port: 0 });
console.log(JSON.stringify({ http: http.addr.port, pg: (pg.addr as Deno.NetAddr).port }));

const SYNC = 0x53;
const READY = [0x5a, 0, 0, 0, 5, 0x49];
/** AuthenticationOk and ReadyForQuery. */
const WELCOME = Uint8Array.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0, ...READY]);
/** BindComplete, DataRow of one column of one byte, CommandComplete and ReadyForQuery. */
const ANSWER = Uint8Array.from([
  ...[0x32, 0, 0, 0, 4],
  ...[0x44, 0, 0, 0, 11, 0, 1, 0, 0, 0, 1, 0x31],
  ...[0x43, 0, 0, 0, 13, ...new TextEncoder().encode("SELECT 1\0")],
  ...READY,
]);

for await (const connection of pg) {
  connection.setNoDelay(true);
  answer(connection).catch(() => {});
}

/** The client sends whole groups of messages. */
async function answer(connection: Deno.TcpConn): Promise<void> {
  const bytes = new Uint8Array(65_536), view = new DataView(bytes.buffer);
  const answers = new Uint8Array(64 * ANSWER.length);
  for (let at = 0; at < answers.length; at += ANSWER.length) answers.set(ANSWER, at);
  await connection.read(bytes); // the startup message
  await connection.write(WELCOME);
  const asked = Deno.args.includes("--hand-over") ? handingOver() : undefined;
  for (let size; (size = await connection.read(bytes)) !== null;) {
    let count = 0;
    for (let at = 0; at < size; at += 1 + view.getUint32(at + 1)) if (bytes[at] === SYNC) count++;
    if (asked !== undefined) { for (let k = 0; k < count; k++) await asked(); }
    await connection.write(answers.subarray(0, count * ANSWER.length));
  }
}

/** Starts a worker. Returns what asks it once. */
function handingOver(): () => Promise<void> {
  const buffer = new SharedArrayBuffer(WORD.bytes + REQUEST_BYTES), words = new Int32Array(buffer);
  const shared = new Uint8Array(buffer, WORD.bytes), request = new Uint8Array(REQUEST_BYTES);
  const worker = new Worker(new URL("bare-worker.ts", import.meta.url), { type: "module" });
  worker.postMessage(buffer);
  let answered = 0;
  return async () => {
    shared.set(request);
    Atomics.add(words, WORD.requests, 1);
    Atomics.notify(words, WORD.requests);
    const waiting = Atomics.waitAsync(words, WORD.answers, answered);
    if (waiting.async) await waiting.value;
    answered++;
    request.set(shared.subarray(0, ANSWER_BYTES));
  };
}
