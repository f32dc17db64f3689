/**
 * The thread to which `bare-server.ts` hands requests: it sleeps in `Atomics.wait`, reads a request from shared memory, and writes an answer over
 * it.
 */
import { ANSWER_BYTES, REQUEST_BYTES, WORD } from "./bare-words.ts";

self.onmessage = ({ data }: MessageEvent<SharedArrayBuffer>) => {
  const words = new Int32Array(data),
    shared = new Uint8Array(data, WORD.bytes),
    request = new Uint8Array(REQUEST_BYTES);
  const answer = new Uint8Array(ANSWER_BYTES);
  for (let seen = 0;;) {
    Atomics.wait(words, WORD.requests, seen);
    const requests = Atomics.load(words, WORD.requests);
    if (requests === seen) continue;
    seen = requests;
    request.set(shared.subarray(0, REQUEST_BYTES));
    shared.set(answer);
    Atomics.add(words, WORD.answers, 1);
    Atomics.notify(words, WORD.answers);
  }
};
