import assert from "node:assert/strict";
import { Workspace } from "../columns.ts";
import { randomFrom, testContext } from "../testing.ts";
import { BoundKernel } from "./binding.ts";
import { type ColumnForm, FORM_TYPE, FORM_WIDTH, type Input } from "./expression.ts";
import { f32, f64, i32, i64, input, type IrNode, select, type WasmType } from "./ir.ts";
import { isLaneable } from "./lower.ts";
import { projectKernel } from "./project.ts";

const FORMS: ColumnForm[] = ["i8", "i16", "u16", "i32", "i64", "f32", "f64"];
const ROWS = 24;

/** Random trees of nodes that have lanes, of any type, over one column of each form and a constant of each type. */
function treesFrom(random: () => number) {
  const pick = <T>(list: readonly T[]): T => list[random() % list.length];
  const compare = (depth: number): IrNode => {
    const type = pick(["i32", "i64", "f32", "f64"] as const);
    const a = tree(type, depth), b = tree(type, depth);
    if (type === "f32") return pick([f32.eq, f32.ne, f32.lt, f32.ge])(a, b);
    if (type === "f64") return pick([f64.eq, f64.ne, f64.gt, f64.le])(a, b);
    const of = type === "i32" ? i32 : i64;
    return pick([of.eq, of.ne, of.ltS, of.gtS, of.leS, of.geS, of.ltU, of.gtU, of.leU, of.geU])(a, b);
  };
  const tree = (type: WasmType, depth: number): IrNode => {
    if (depth === 0 || random() % 6 === 0) {
      const indices = FORMS.flatMap((form, k) => (FORM_TYPE[form] === type ? [k] : []));
      const constant = FORMS.length + ["i32", "i64", "f32", "f64"].indexOf(type);
      return input(pick([...indices, constant]), type);
    }
    const sub = (t: WasmType) => tree(t, depth - 1);
    if (random() % 5 === 0) return select(compare(depth - 1), sub(type), sub(type));
    switch (type) {
      case "i32":
        return pick([
          () => pick([i32.add, i32.sub, i32.mul, i32.and, i32.or, i32.xor])(sub("i32"), sub("i32")),
          () => pick([i32.shl, i32.shrS, i32.shrU])(sub("i32"), i32.const(random() % 40)),
          () => pick([i32.extend8, i32.extend16, i32.eqz])(sub("i32")),
          () => i32.wrap(sub("i64")),
          () => pick([i32.truncSatF64])(sub("f64")),
          () => i32.truncSatF32(sub("f32")),
          () => pick([i32.and, i32.or, i32.xor])(compare(depth - 1), compare(depth - 1)),
          () => i32.eqz(compare(depth - 1)),
          () => compare(depth - 1),
        ])();
      case "i64":
        return pick([
          () => pick([i64.add, i64.sub, i64.mul, i64.and, i64.or, i64.xor])(sub("i64"), sub("i64")),
          () => pick([i64.shl, i64.shrS, i64.shrU])(sub("i64"), i64.const(BigInt(random() % 70))),
          () => pick([i64.extendS, i64.extendU])(sub("i32")),
        ])();
      case "f32":
        return pick([
          () => pick([f32.add, f32.sub, f32.mul, f32.div, f32.min, f32.max])(sub("f32"), sub("f32")),
          () => pick([f32.abs, f32.neg, f32.ceil, f32.floor, f32.trunc, f32.nearest, f32.sqrt])(sub("f32")),
          () => f32.demote(sub("f64")),
          () => f32.convertI32(sub("i32")),
        ])();
      case "f64":
        return pick([
          () => pick([f64.add, f64.sub, f64.mul, f64.div, f64.min, f64.max, f64.copysign])(sub("f64"), sub("f64")),
          () => pick([f64.abs, f64.neg, f64.ceil, f64.floor, f64.trunc, f64.nearest, f64.sqrt])(sub("f64")),
          () => f64.promote(sub("f32")),
          () => f64.convertI32(sub("i32")),
          () => f64.convertI64(sub("i64")),
        ])();
    }
  };
  return tree;
}

Deno.test("lanes and scalar code give the same bits, for every node and form", () => {
  const context = testContext(1 << 26);
  const { heap } = context;
  const space = Workspace.of(context, "test");
  const random = randomFrom(42);
  const edges = [0, -0, 1, -1, 0.5, -2.5, 1e10, -1e300, NaN, Infinity, -Infinity, 2 ** 31, -(2 ** 31), 3.4e38, 5e-324];
  const columns = FORMS.map((form) => ({ type: "", address: space.allocate(ROWS * FORM_WIDTH[form] + 16) }));
  for (let row = 0; row < ROWS; row++) {
    const bits = BigInt(random()) << 32n | BigInt(random());
    const integer = row % 4 === 0
      ? [0n, -1n, 1n << 31n, 1n << 63n, 5n, (1n << 53n) + 1n][row / 4]
      : row % 4 === 1
      ? BigInt.asIntN(8, bits)
      : bits;
    const number = row % 2 === 0 ? edges[(row / 2) % edges.length] : (random() / 2 ** 32 - 0.5) * 10 ** (random() % 12);
    columns.forEach(({ address }, k) => {
      const form = FORMS[k];
      if (form === "i8") heap.i8[address + row] = Number(BigInt.asIntN(8, integer));
      else if (form === "i16" || form === "u16") heap.i16[address / 2 + row] = Number(BigInt.asIntN(16, integer));
      else if (form === "i32") heap.i32[address / 4 + row] = Number(BigInt.asIntN(32, integer));
      else if (form === "i64") heap.i64[address / 8 + row] = BigInt.asIntN(64, integer);
      else if (form === "f32") heap.f32[address / 4 + row] = number;
      else heap.f64[address / 8 + row] = number;
    });
  }
  const inputs: Input[] = [
    ...FORMS.map((form, column): Input => ({ kind: "column", column, form })),
    { kind: "constant", type: "i32", value: -7 },
    { kind: "constant", type: "i64", value: 123_456_789_012_345n },
    { kind: "constant", type: "f32", value: 0.1 },
    { kind: "constant", type: "f64", value: -1e9 },
  ];
  const tree = treesFrom(random);
  const target = space.allocate(ROWS * 8 + 16);
  const bitsOf = (form: ColumnForm, rowCount: number) => {
    // All NaNs are equal.
    if (form === "f64") return Array.from(heap.f64.slice(target / 8, target / 8 + rowCount));
    if (form === "f32") return Array.from(heap.f32.slice(target / 4, target / 4 + rowCount));
    return Array.from(heap.u8.slice(target, target + rowCount * FORM_WIDTH[form]));
  };
  for (let round = 0; round < 600; round++) {
    const form = FORMS[round % FORMS.length];
    const node = tree(FORM_TYPE[form], 4);
    assert.ok(isLaneable(node, () => true));
    const compiled = projectKernel(heap.memory, inputs, undefined, [{ kind: "value", node, form }]);
    const kernel = new BoundKernel(compiled, inputs, context, space);
    kernel.setColumns(columns);
    const width = FORM_WIDTH[form];
    kernel.setI32(compiled.cells.out0, target);
    kernel.run(0, ROWS);
    const lanes = bitsOf(form, ROWS);
    // A run of one row uses no lane pair.
    for (let row = 0; row < ROWS; row++) {
      kernel.setI32(compiled.cells.out0, target + row * width);
      kernel.run(row, row + 1);
    }
    assert.deepEqual(
      lanes,
      bitsOf(form, ROWS),
      JSON.stringify(node, (_, v) => (typeof v === "bigint" ? String(v) : v)),
    );
  }
  space.release();
});
