/**
 * The most frequent message from the writer, without JSON: commands that have added rows have succeeded, and the tables have other segments and
 * dictionaries. All numbers are f64, behind a word of 8 bytes that is 0 (`append-message.ts`).
 *
 *     number of answers; number of tables, -1 without a publication; version; LSN
 *     for each answer       the command's id
 *     for each table        id; LSN; number of splices of its parts; number of its dictionaries; each of both -1 for undefined
 *       for each splice       start; count; numbers of `refs`; refs
 *       for each dictionary   column; address of the entries; count
 */
import type { Answers } from "./client.ts";
import type { Publication, TableChange } from "./publication.ts";

const NUMBER_BYTES = 8;
const HEAD = 5, TABLE = 4, SPLICE = 3, DICTIONARY = 3;

/** The message, unless it has something else or is larger than `bytesMax`. */
export function packAnswers({ publication, answers = [] }: Answers, bytesMax: number): ArrayBuffer | undefined {
  let size = HEAD + answers.length;
  for (const { value, error } of answers) if (value !== undefined || error !== undefined) return undefined;
  if (publication !== undefined) {
    const { branch, access, tables } = publication;
    if (branch !== undefined || access !== undefined) return undefined;
    for (const table of tables) {
      if (!hasOnlyParts(table)) return undefined;
      size += TABLE + DICTIONARY * (table.dictionaries?.length ?? 0);
      for (const { refs } of table.parts ?? []) size += SPLICE + refs.length;
    }
  }
  if (NUMBER_BYTES * size > bytesMax) return undefined;
  const numbers = new Float64Array(size);
  numbers[1] = answers.length;
  numbers[2] = publication?.tables.length ?? -1;
  numbers[3] = publication?.version ?? 0;
  numbers[4] = publication?.lsn ?? 0;
  let at = HEAD;
  for (const { id } of answers) numbers[at++] = id;
  for (const { tableId, lsn, parts, dictionaries } of publication?.tables ?? []) {
    numbers[at++] = tableId;
    numbers[at++] = Number(lsn);
    numbers[at++] = parts?.length ?? -1;
    numbers[at++] = dictionaries?.length ?? -1;
    for (const { start, count, refs } of parts ?? []) {
      numbers[at++] = start;
      numbers[at++] = count;
      numbers[at++] = refs.length;
      // Bytes are copied, as some of these numbers are integers of 64 bits.
      numbers.set(refs, at);
      at += refs.length;
    }
    for (const { columnId, entries, count } of dictionaries ?? []) {
      numbers[at++] = columnId;
      numbers[at++] = entries;
      numbers[at++] = count;
    }
  }
  return numbers.buffer;
}

function hasOnlyParts({ dropped, unread, schema, directory, detached, damage, dictionaries }: TableChange): boolean {
  return dropped === undefined && unread === undefined && schema === undefined && directory === undefined &&
    detached === undefined && damage === undefined && (dictionaries ?? []).every(({ own }) => own === undefined);
}

/** Undefined if it is another message. */
export function unpackAnswers(buffer: ArrayBuffer): Answers | undefined {
  if (new Uint32Array(buffer, 0, 1)[0] !== 0) return undefined;
  const numbers = new Float64Array(buffer), [, answerCount, tableCount, version, lsn] = numbers;
  let at = HEAD;
  const listOf = <T>(count: number, read: () => T): T[] => {
    const list: T[] = [];
    for (let k = 0; k < count; k++) list.push(read());
    return list;
  };
  const answers = listOf(answerCount, () => ({ id: numbers[at++] }));
  if (tableCount < 0) return { answers };
  const tables = listOf(tableCount, () => {
    const change: TableChange = { tableId: numbers[at++], lsn: BigInt(numbers[at++]) };
    const partCount = numbers[at++], dictionaryCount = numbers[at++];
    if (partCount >= 0) {
      change.parts = listOf(partCount, () => {
        const start = numbers[at++], count = numbers[at++], length = numbers[at++];
        return { start, count, refs: numbers.subarray(at, at += length) };
      });
    }
    if (dictionaryCount >= 0) {
      change.dictionaries = listOf(dictionaryCount, () => (
        { columnId: numbers[at++], entries: numbers[at++], count: numbers[at++] }
      ));
    }
    return change;
  });
  return { answers, publication: { version, lsn, tables } satisfies Publication };
}
