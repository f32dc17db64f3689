import assert from "node:assert/strict";
import { openedBatch } from "./blocks.ts";
import type { Answers, Envelope } from "./client.ts";
import type { AppendBatch, TableRows } from "./contract.ts";
import { pack, packAnswer, packCommand, unpack, unpackAnswer, unpackCommand } from "./messages.ts";
import { packAppendBatch, unpackAppendBatch } from "./packed.ts";
import { encodeRows } from "./row-payload.ts";

const ROWS = 20_000;

function packedRows(): Uint8Array {
  const ints = new Uint8Array(Int32Array.from({ length: ROWS }, (_, k) => k).buffer);
  const symbols = Int32Array.of(0, 2, 2, 1);
  return packAppendBatch({
    rowCount: ROWS,
    columns: [{ columnId: 0, values: ints }, {
      columnId: 3,
      values: ints,
      heap: new Uint8Array([97, 98, 99]),
      symbols,
    }],
  });
}

/** As another thread receives it. */
function received(value: unknown): unknown {
  const buffers = pack(value);
  return unpack(structuredClone(buffers, { transfer: buffers }));
}

Deno.test("a message transfers the buffer of a packed batch instead of copying the columns", () => {
  const bytes = packedRows();
  const batch = unpackAppendBatch(bytes, [0, 3]);
  const [first, ...others] = pack({ batches: [batch] });
  assert.deepEqual(others, [bytes.buffer]);
  assert.ok(first!.byteLength < 1_000);
  const { batches: [{ rowCount, columns }] } = received({ batches: [batch] }) as { batches: [AppendBatch] };
  assert.equal(bytes.byteLength, 0);
  assert.equal(rowCount, ROWS);
  const sent = unpackAppendBatch(packedRows(), [0, 3]).columns;
  assert.deepEqual(columns.map((column) => ({ heap: undefined, symbols: undefined, ...column })), sent);
});

Deno.test("a message copies a packed batch that is only a part of its buffer", () => {
  const packed = packedRows();
  const buffer = new Uint8Array(packed.length + 8);
  buffer.set(packed);
  const batch = unpackAppendBatch(buffer.subarray(0, packed.length), [0, 3]);
  const buffers = pack({ batches: [batch] });
  assert.equal(buffers.length, 1);
  assert.ok(buffers[0]!.byteLength > packed.length - 1_000);
});

Deno.test("a message has all kinds of values", () => {
  const large = new Uint8Array(100_000).fill(7);
  const value = {
    id: 7,
    none: null,
    numbers: [-1.5, Infinity, -Infinity, NaN],
    texts: ["", '\ud83d\ude00 "q" \\', "a lone \ud800"],
    list: [{ start: -(2n ** 63n), flag: true }, { start: 2n ** 63n - 1n, flag: false }],
    views: [
      Uint8Array.of(1, 2, 3),
      Int32Array.of(-1, 2 ** 31 - 1),
      BigInt64Array.of(-1n, 5n),
      Float64Array.of(-0.5),
      new Uint8Array(0),
    ],
    part: large.subarray(10, 20),
    large,
    again: large,
  };
  const expected = { ...value, large: large.slice(), again: large.slice(), part: large.slice(10, 20) };
  assert.deepEqual(received(value), expected);
});

Deno.test("a message leaves undefined properties out", () => {
  assert.deepEqual(Object.keys(received({ a: undefined, b: 1 }) as object), ["b"]);
});

const ROW_TYPES = ["TIMESTAMP", "SYMBOL", "VARCHAR"];

function rowsOf(count: number) {
  return encodeRows(Array.from({ length: count }, (_, k) => [BigInt(k), `s${k % 2}`, "text"]), [0, 1, 2], ROW_TYPES);
}

Deno.test("rows to add arrive as they were sent: small ones as bytes, others as any command", () => {
  for (const batches of [[rowsOf(1)], [rowsOf(1), rowsOf(3)], [rowsOf(10_000)], []]) {
    const changes = batches.map((batch, k) => ({ tableId: 7 + k, batches: [batch] }));
    const sent = packCommand({ id: 2 ** 40 + 1, command: { kind: "append", changes } });
    const isSmall = batches.every(({ rowCount }) => rowCount < 10);
    assert.equal(new Uint32Array(sent[0]!)[0] === 0, isSmall);
    const { id, command } = unpackCommand(structuredClone(sent));
    assert.equal(id, 2 ** 40 + 1);
    assert.ok(command.kind === "append");
    const opened = (all: TableRows[]) =>
      all.map(({ tableId, batches }) => ({ tableId, batches: batches.map((batch) => openedBatch(batch)) }));
    const expected = batches.map((_, k) => ({ tableId: 7 + k, batches: [rowsOf(batches[k]!.rowCount)] }));
    assert.deepEqual(opened(command.changes), opened(expected));
  }
});

Deno.test("a command with rows as columns, or of another kind, arrives as it was sent", () => {
  const batch = unpackAppendBatch(packedRows(), [0, 3]);
  const append: Envelope = { id: 1, command: { kind: "append", changes: [{ tableId: 1, batches: [batch] }] } };
  const got = unpackCommand(structuredClone(packCommand(append))).command;
  assert.ok(got.kind === "append" && "columns" in got.changes[0]!.batches[0]!);
  const open: Envelope = { id: 2, command: { kind: "open", tableId: 3 } };
  assert.deepEqual(unpackCommand(packCommand(open)), open);
});

const PARTS = [
  { start: 0, count: 1, refs: new Float64Array(BigInt64Array.of(-1n, -(2n ** 63n), 3n).buffer) },
  { start: 5, count: 0, refs: new Float64Array(0) },
];
const ANSWERED: { title: string; message: Answers; isText?: true }[] = [
  { title: "answers alone", message: { answers: [{ id: 1 }, { id: 2 ** 40 }] } },
  {
    title: "a publication of rows",
    message: {
      answers: [{ id: 9 }],
      publication: {
        version: 5,
        lsn: 77,
        tables: [
          { tableId: 1, lsn: 76n, parts: PARTS, dictionaries: [{ columnId: 2, entries: 4096, count: 3 }] },
          { tableId: 2, lsn: 77n },
          { tableId: 3, lsn: 77n, parts: [], dictionaries: [] },
        ],
      },
    },
  },
  {
    title: "a publication without answers",
    message: { publication: { version: 6, lsn: 77, tables: [] }, answers: [] },
  },
  { title: "a value", message: { answers: [{ id: 1, value: 0 }] }, isText: true },
  { title: "an error", message: { answers: [{ id: 1, error: { name: "Error", message: "m" } }] }, isText: true },
  {
    title: "a dropped table",
    message: { answers: [], publication: { version: 6, lsn: 77, tables: [{ tableId: 1, lsn: 1n, dropped: true }] } },
    isText: true,
  },
  {
    title: "a transaction's own dictionary",
    message: {
      answers: [],
      publication: {
        version: 6,
        lsn: 77,
        tables: [{ tableId: 1, lsn: 1n, dictionaries: [{ columnId: 2, entries: 8, count: 1, own: true }] }],
      },
    },
    isText: true,
  },
];
for (const { title, message, isText = false } of ANSWERED) {
  Deno.test(`what the writer answers arrives as it was sent: ${title}`, () => {
    const sent = packAnswer(message);
    assert.equal(new Uint32Array(sent[0]!)[0] !== 0, isText);
    const got = unpackAnswer(structuredClone(sent));
    const bitsOf = ({ publication }: Answers) =>
      publication?.tables.flatMap(({ parts = [] }) => parts.map(({ refs }) => new BigInt64Array(refs.slice().buffer)));
    assert.deepEqual(bitsOf(got), bitsOf(message));
    assert.deepEqual(got, message);
  });
}
