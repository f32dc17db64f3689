import assert from "node:assert/strict";
import type { Command } from "./commands.ts";
import { Turns } from "./turns.ts";

const load = (loadId: number): Command => ({ kind: "load", loadId, packed: new Uint8Array() });
const append: Command = { kind: "append", changes: [] };

/** The ids of the commands of each turn, numbered in the order of their arrival. `later` arrive after the first turn. */
function turnsOf(first: Command[], later: Command[] = []): number[][] {
  const turns = new Turns();
  let id = 0;
  const add = (commands: Command[]) => commands.forEach((command) => turns.add({ id: id++, command }));
  add(first);
  const out: number[][] = [];
  while (!turns.isEmpty) {
    out.push(turns.next().map((envelope) => envelope.id));
    add(later.splice(0));
  }
  return out;
}

const cases: { title: string; first: Command[]; later?: Command[]; turns: number[][] }[] = [
  { title: "executes all commands together if no load is under way", first: [append, append], turns: [[0, 1]] },
  { title: "executes steps of loads one at a time", first: [load(2), load(-1), load(2)], turns: [[0], [1], [2]] },
  {
    title: "executes other commands before the steps that arrived with them",
    first: [load(2), load(2), append, load(2), append],
    turns: [[2, 4], [0], [1], [3]],
  },
  {
    title: "executes commands that arrive during a step before the next one",
    first: [load(2), load(2), load(2)],
    later: [append, append],
    turns: [[0], [3, 4], [1], [2]],
  },
  {
    title: "executes a step between others that keep arriving",
    first: [append, load(2), load(2)],
    later: [append],
    turns: [[0], [1], [3], [2]],
  },
  {
    title: "ends a load after its steps, but not after those of others",
    first: [load(2), load(3), { kind: "endLoad", loadId: 4 }, { kind: "endLoad", loadId: 2 }, {
      kind: "abortLoad",
      loadId: 3,
    }],
    turns: [[2], [0], [1], [3], [4]],
  },
  {
    title: "ends the writer after all steps, and whatever came behind that after it",
    first: [load(2), append, { kind: "close" }, append],
    turns: [[1], [0], [2], [3]],
  },
];
for (const { title, first, later, turns } of cases) {
  Deno.test(`Turns ${title}`, () => assert.deepEqual(turnsOf(first, later), turns));
}
