/**
 * The frame of every kernel: one exported function `run(block, start, end)` that processes rows start … end-1.
 *
 *     block   i64 cells in shared memory: address of the cancel word, two cells for each input, then the cells of the kernel's sink
 *     result  defined by the sink, or CANCELLED
 *
 * Rows are processed in strips of 4,096; the cancel word is read between strips. A predicate whose nodes have lanes is evaluated for
 * eight rows at once into bits (conditions on 32-bit columns for sixteen), and the scalar body runs for the bits that are set.
 */
import { NULL_TEXT } from "../../types/mod.ts";
import { SqlError, SQLSTATE } from "../../errors.ts";
import { SHARED_WORD } from "../../storage/heap.ts";
import { type Code, Module, sharedMemory, type ValueType } from "../../wasm/assembler.ts";
import { FORM_TYPE, FORM_WIDTH, type Input } from "./expression.ts";
import { input, type IrNode, type WasmType } from "./ir.ts";
import { pollQuery } from "../long-texts.ts";
import { Library, PROCEDURES } from "./library.ts";
import {
  inputsOf,
  isLaneable,
  isNarrow,
  type LaneScope,
  lowerLanes,
  lowerMask,
  lowerNarrow,
  lowerScalar,
  partsOf,
  type ScalarScope,
  shapeOf,
} from "./lower.ts";

export const CANCELLED = -1;
const STRIP_ROWS = 4_096;
const CANCEL_CELL = 0;
const FIRST_INPUT_CELL = 1;
const GROUP_ROWS = 8;
const NARROW_GROUP_ROWS = 16;

/** Byte offset of a cell in the parameter block. */
function offsetOf(cell: number): number {
  return cell * 8;
}

const LOAD: Record<string, string> = {
  i8: "i32.load8_s",
  i16: "i32.load16_s",
  u16: "i32.load16_u",
  i32: "i32.load",
  i64: "i64.load",
  f32: "f32.load",
  f64: "f64.load",
};
const STORE: Record<string, string> = {
  i8: "i32.store8",
  i16: "i32.store16",
  u16: "i32.store16",
  i32: "i32.store",
  i64: "i64.store",
  f32: "f32.store",
  f64: "f64.store",
};

export function storeOf(form: string): string {
  return STORE[form];
}

export function inputShape(inputs: readonly Input[]): string {
  return inputs.map((
    i,
  ) => (i.kind === "constant"
    ? `k${i.type}`
    : i.kind === "column"
    ? `c${i.column}${i.form}`
    : i.kind === "mask"
    ? `m${i.column}`
    : i.kind === "lookup"
    ? `l${i.column}${i.form}`
    : i.kind === "row"
    ? "row"
    : i.kind === "word"
    ? `w${i.column}.${i.width}.${i.k}`
    : `t${i.column}`)
  ).join(";");
}

/** How `KernelWriter` divides rows. */
interface Strips {
  /** Rows of a strip: a multiple of 64. */
  rowCount?: number;
  /** Emits what follows the rows of a strip. */
  end?: () => void;
}

export class KernelWriter {
  readonly module: Module;
  readonly library: Library;
  readonly code: Code;
  private readonly functionIndex: number;
  /** Locals of the parameters. */
  readonly block = 0;
  readonly start = 1;
  readonly end = 2;
  private readonly cancelWord: number;
  /** Locals of column addresses and constants. */
  private readonly primary: (number | undefined)[];
  private readonly secondary: (number | undefined)[] = [];
  /** Locals of inputs for the current row; those beyond `inputs` are derived. */
  private readonly scalars: (number | undefined)[] = [];
  private readonly lanes: (number | undefined)[] = [];
  private readonly derived: { index: number; node: IrNode }[] = [];
  private nextInput: number;
  private nextCell: number;
  readonly scope: ScalarScope;

  /** `memory`: the one in which the kernel works. */
  constructor(memory: WebAssembly.Memory, private readonly inputs: readonly Input[]) {
    this.module = new Module([sharedMemory(memory)], PROCEDURES);
    this.library = new Library(this.module);
    const { code, index } = this.module.function(["i32", "i32", "i32"], ["i32"], "run");
    this.code = code;
    this.functionIndex = index;
    this.nextInput = inputs.length;
    this.nextCell = FIRST_INPUT_CELL + 2 * inputs.length;
    this.cancelWord = this.loadCell("i32", CANCEL_CELL);
    this.primary = inputs.map(() => undefined);
    inputs.forEach((spec, k) => {
      const cell = FIRST_INPUT_CELL + 2 * k;
      const type: ValueType = spec.kind === "constant" ? spec.type : spec.kind === "row" ? "i64" : "i32";
      this.primary[k] = this.loadCell(type, cell);
      if (spec.kind === "constant" || spec.kind === "row") {
        this.scalars[k] = spec.kind === "constant" ? this.primary[k] : undefined;
      } else if (spec.kind !== "column" && spec.kind !== "word" && spec.kind !== "mask") {
        this.secondary[k] = this.loadCell("i32", cell + 1);
      }
    });
    this.scope = {
      code,
      library: this.library,
      input: (k) => this.scalars[k]!,
      bound: new Map(),
      poll: () => this.poll(),
    };
  }

  /** Adds a cell for the sink and returns its number. */
  cell(): number {
    return this.nextCell++;
  }

  get cellCount(): number {
    return this.nextCell;
  }

  /** A local that is loaded with a cell's value at the start. */
  loadCell(type: ValueType, cell: number): number {
    const local = this.code.local(type);
    this.code.get(this.block).memory(`${type}.load`, offsetOf(cell)).set(local);
    return local;
  }

  storeCell(type: ValueType, cell: number, value: number): void {
    this.code.get(this.block).get(value).memory(`${type}.store`, offsetOf(cell));
  }

  poll(): void {
    this.code.get(this.cancelWord).memory("i32.atomic.load").if(() => this.code.i32(CANCELLED).return());
  }

  /** Adds an input for the sink (a state) that is kept in a local. */
  local(type: WasmType): { node: IrNode; local: number } {
    const index = this.nextInput++;
    const local = this.code.local(type);
    this.scalars[index] = local;
    return { node: input(index, type), local };
  }

  /** Adds an input whose lanes are kept in a local. */
  laneLocal(type: WasmType): { node: IrNode; local: number } {
    const index = this.nextInput++;
    const local = this.code.local("v128");
    this.lanes[index] = local;
    return { node: input(index, type), local };
  }

  /** Evaluates the node once for each row, after the predicate, for several uses. */
  derive(node: IrNode): IrNode {
    if (node.op === "input" || node.op.endsWith(".const")) return node;
    const index = this.nextInput++;
    this.derived.push({ index, node });
    return input(index, node.type);
  }

  private isDerived(index: number): { index: number; node: IrNode } | undefined {
    return this.derived.find((d) => d.index === index);
  }

  /** The base inputs that nodes read, directly or through derived ones. */
  private baseInputs(nodes: readonly IrNode[]): { base: Set<number>; derived: Set<number> } {
    const base = new Set<number>(), derived = new Set<number>();
    const visit = (list: readonly IrNode[]) => {
      for (const index of inputsOf(list)) {
        if (index < this.inputs.length) base.add(index);
        const d = this.isDerived(index);
        if (d !== undefined && !derived.has(index)) {
          derived.add(index);
          visit([d.node]);
        }
      }
    };
    visit(nodes);
    return { base, derived };
  }

  /** Loads the inputs of `nodes` for the row in local `row`, or the one this many rows `ahead`. */
  loadRow(nodes: readonly IrNode[], row: number, loaded: ReadonlySet<number> = new Set(), ahead = 0): Set<number> {
    const { base, derived } = this.baseInputs(nodes);
    for (const k of base) if (!loaded.has(k)) this.loadScalar(k, row, ahead);
    for (const { index, node } of this.derived) {
      if (!derived.has(index)) continue;
      this.scalars[index] ??= this.code.local(node.type);
      lowerScalar(node, this.scope);
      this.code.set(this.scalars[index]!);
    }
    return base;
  }

  private address(base: number, row: number, width: number): Code {
    const { code } = this;
    code.get(base).get(row);
    if (!Number.isInteger(Math.log2(width))) code.i32(width).op("i32.mul");
    else if (width > 1) code.i32(Math.log2(width)).op("i32.shl");
    return code.op("i32.add");
  }

  private loadScalar(k: number, row: number, ahead: number): void {
    const spec = this.inputs[k], { code } = this;
    if (spec.kind === "constant") return;
    const type: WasmType = spec.kind === "symbolText" || spec.kind === "row" || spec.kind === "word"
      ? "i64"
      : spec.kind === "mask"
      ? "i32"
      : FORM_TYPE[spec.form];
    this.scalars[k] ??= code.local(type);
    switch (spec.kind) {
      case "column":
        this.address(this.primary[k]!, row, FORM_WIDTH[spec.form]).memory(
          LOAD[spec.form],
          ahead * FORM_WIDTH[spec.form],
        );
        break;
      case "word":
        this.address(this.primary[k]!, row, spec.width).memory("i64.load", ahead * spec.width + spec.k * 8);
        break;
      case "mask": {
        const at = code.local("i32");
        code.get(row).i32(ahead).op("i32.add").set(at).get(this.primary[k]!).get(at).i32(3).op("i32.shr_u").op(
          "i32.add",
        );
        code.memory("i32.load8_u").get(at).i32(7).op("i32.and").op("i32.shr_u").i32(1).op("i32.and");
        break;
      }
      case "row":
        code.get(this.primary[k]!).get(row).op("i64.extend_i32_u").op("i64.add");
        if (ahead > 0) code.i64(BigInt(ahead)).op("i64.add");
        break;
      case "lookup":
        // Tables start with the value of code -1.
        code.get(this.secondary[k]!);
        this.address(this.primary[k]!, row, 4).memory("i32.load", 4 * ahead).i32(1).op("i32.add");
        if (FORM_WIDTH[spec.form] > 1) code.i32(Math.log2(FORM_WIDTH[spec.form])).op("i32.shl");
        code.op("i32.add").memory(LOAD[spec.form]);
        break;
      case "symbolText": {
        const symbol = code.local("i32");
        this.address(this.primary[k]!, row, 4).memory("i32.load", 4 * ahead).tee(symbol).i32(0).op("i32.lt_s");
        code.if(
          () => code.i64(NULL_TEXT),
          () => this.address(this.secondary[k]!, symbol, 8).memory("i64.load"),
          "i64",
        );
        break;
      }
    }
    code.set(this.scalars[k]!);
  }

  lower(node: IrNode): void {
    lowerScalar(node, this.scope);
  }

  /** True if these nodes, and the derived ones that they read, have lanes. */
  hasLanes(nodes: readonly IrNode[]): boolean {
    const inputHasLanes = (index: number): boolean => {
      const d = this.isDerived(index);
      if (d !== undefined) return isLaneable(d.node, inputHasLanes);
      if (index >= this.inputs.length) return this.lanes[index] !== undefined;
      const { kind } = this.inputs[index];
      return kind === "column" || kind === "constant" || kind === "row";
    };
    return nodes.every((node) => isLaneable(node, inputHasLanes));
  }

  laneScope(): LaneScope {
    return { code: this.code, input: (k) => this.lanes[k]!, bound: new Map() };
  }

  /** Loads the constants into lanes, before the loops. */
  splatConstants(): void {
    const { code } = this;
    this.inputs.forEach((spec, k) => {
      if (spec.kind !== "constant" || this.lanes[k] !== undefined) return;
      const local = this.lanes[k] = code.local("v128");
      code.get(this.primary[k]!);
      if (spec.type === "i32") code.op("i64.extend_i32_s").op("i64x2.splat");
      else if (spec.type === "i64") code.op("i64x2.splat");
      else {
        if (spec.type === "f32") code.op("f64.promote_f32");
        code.op("f64x2.splat");
      }
      code.set(local);
    });
  }

  /** Loads the lanes of rows `row + 2 * pair` and the next one. */
  loadLanes(nodes: readonly IrNode[], row: number, pair: number, scope: LaneScope): void {
    const { base, derived } = this.baseInputs(nodes);
    for (const k of base) this.loadLane(k, row, pair);
    for (const { index, node } of this.derived) {
      if (!derived.has(index)) continue;
      this.lanes[index] ??= this.code.local("v128");
      lowerLanes(node, scope);
      this.code.set(this.lanes[index]!);
    }
  }

  private loadLane(k: number, row: number, pair: number): void {
    const spec = this.inputs[k], { code } = this;
    if (spec.kind === "constant") return;
    this.lanes[k] ??= code.local("v128");
    if (spec.kind === "row") {
      code.get(this.primary[k]!).get(row).op("i64.extend_i32_u").op("i64.add").op("i64x2.splat").lanes64(
        BigInt(2 * pair),
        BigInt(2 * pair + 1),
      ).op("i64x2.add");
    } else if (spec.kind === "column") {
      const width = FORM_WIDTH[spec.form], offset = 2 * pair * width;
      this.address(this.primary[k]!, row, width);
      switch (spec.form) {
        case "i64":
        case "f64":
          code.memory("v128.load", offset);
          break;
        case "i32":
          code.memory("v128.load32x2_s", offset);
          break;
        case "f32":
          code.memory("v128.load64_zero", offset).op("f64x2.promote_low_f32x4");
          break;
        case "i16":
          code.memory("v128.load32_zero", offset).op("i32x4.extend_low_i16x8_s").op("i64x2.extend_low_i32x4_s");
          break;
        case "u16":
          code.memory("v128.load32_zero", offset).op("i32x4.extend_low_i16x8_u").op("i64x2.extend_low_i32x4_s");
          break;
        case "i8":
          code.memory("v128.load16_splat", offset).op("i16x8.extend_low_i8x16_s").op("i32x4.extend_low_i16x8_s").op(
            "i64x2.extend_low_i32x4_s",
          );
          break;
      }
    }
    code.set(this.lanes[k]!);
  }

  /**
   * Emits the loop over strips. `body(row, stripEnd)` must advance `row` to stripEnd. Execution continues after it at
   * the end of the rows.
   */
  strips(body: (row: number, stripEnd: number) => void, { rowCount = STRIP_ROWS, end }: Strips = {}): void {
    const { code } = this;
    const row = code.local("i32"), stripEnd = code.local("i32");
    code.get(this.start).set(row);
    code.block((done) =>
      code.loop((again) => {
        code.get(row).get(this.end).op("i32.ge_s").brIf(done);
        this.poll();
        code.get(row).i32(rowCount).op("i32.add").tee(stripEnd).get(this.end).get(stripEnd).get(this.end).op(
          "i32.lt_s",
        ).op("select").set(stripEnd);
        body(row, stripEnd);
        end?.();
        code.br(again);
      })
    );
  }

  /** Splits a predicate into conditions on 32-bit columns (mostly symbol codes) and the rest. */
  private split(predicate: IrNode): { narrow: IrNode[]; rest: IrNode[] } {
    const isValue = (k: number) => {
      const spec = this.inputs[k];
      return spec !== undefined && ((spec.kind === "column" && spec.form === "i32") || spec.kind === "constant");
    };
    const parts = partsOf(predicate);
    const reads = (part: IrNode) => inputsOf([part]).some((k) => this.inputs[k].kind === "column");
    const narrow = parts.filter((part) => isNarrow(part, isValue) && reads(part));
    return { narrow, rest: parts.filter((part) => !narrow.includes(part)) };
  }

  /** True if a part of the predicate is tested for sixteen rows at once. It is assumed that few rows pass it. */
  isSelective(predicate: IrNode | undefined): boolean {
    return predicate !== undefined && this.split(predicate).narrow.length > 0;
  }

  /** Runs `body` for each row that passes `predicate`. Loads `nodes`, the inputs of the body. */
  scalarRows(
    predicate: IrNode | undefined,
    nodes: readonly IrNode[],
    body: (row: number) => void,
    strips?: Strips,
  ): void {
    const { code } = this, mask = predicate?.op === "input" ? this.inputs[predicate.value as number] : undefined;
    if (mask?.kind === "mask") return this.maskedRows(this.primary[predicate!.value as number]!, nodes, body, strips);
    if (predicate !== undefined && this.isSelective(predicate)) {
      const { narrow, rest } = this.split(predicate);
      const all = narrow.reduce((a, b) => ({ op: "i32.and", type: "i32", args: [a, b] }));
      const rowBody = rest.length === 0 ? body : (row: number) => {
        code.block((skip) => {
          for (const part of rest) {
            this.loadRow([part], row);
            this.lower(part);
            code.op("i32.eqz").brIf(skip);
          }
          this.loadRow(nodes, row);
          body(row);
        });
      };
      const bitsOf = this.narrowBits(all);
      this.strips(
        (row, stripEnd) =>
          this.groups(all, rest.length === 0 ? nodes : [], row, stripEnd, rowBody, NARROW_GROUP_ROWS, bitsOf),
        strips,
      );
      return;
    }
    const lanes = predicate !== undefined && this.hasLanes([predicate]);
    if (lanes) this.splatConstants();
    this.strips((row, stripEnd) => {
      if (lanes) {
        return this.groups(
          predicate,
          nodes,
          row,
          stripEnd,
          body,
          GROUP_ROWS,
          (at, bits) => this.wideBits(predicate, at, bits),
        );
      }
      this.eachRow(predicate, nodes, row, stripEnd, body);
    }, strips);
  }

  /** Runs `body` for the rows from `row` on and before `stripEnd` that pass the predicate, one after the other. */
  eachRow(
    predicate: IrNode | undefined,
    nodes: readonly IrNode[],
    row: number,
    stripEnd: number,
    body: (row: number) => void,
  ): void {
    const { code } = this;
    code.block((done) =>
      code.loop((again) => {
        code.get(row).get(stripEnd).op("i32.ge_s").brIf(done);
        code.block((skip) => {
          let loaded: Set<number> | undefined;
          if (predicate !== undefined) {
            loaded = this.loadRow([predicate], row);
            this.lower(predicate);
            code.op("i32.eqz").brIf(skip);
          }
          this.loadRow(nodes, row, loaded);
          body(row);
        });
        code.get(row).i32(1).op("i32.add").set(row).br(again);
      })
    );
  }

  /** Runs `body` for each row whose bit in a mask is set. */
  private maskedRows(mask: number, nodes: readonly IrNode[], body: (row: number) => void, strips?: Strips): void {
    const { code } = this;
    const word = code.local("i32"), bits = code.local("i64"), at = code.local("i32");
    const shifted = (push: () => void) => {
      code.i64(-1n);
      push();
      code.op("i64.extend_i32_u").op("i64.shl");
    };
    this.strips((row, stripEnd) => {
      code.block((done) =>
        code.loop((next) => {
          code.get(row).get(stripEnd).op("i32.ge_s").brIf(done);
          code.get(row).i32(-64).op("i32.and").set(word);
          code.get(mask).get(word).i32(3).op("i32.shr_u").op("i32.add").memory("i64.load");
          shifted(() => code.get(row).get(word).op("i32.sub"));
          code.op("i64.and").set(bits);
          code.get(word).i32(64).op("i32.add").tee(row).get(stripEnd).op("i32.gt_s").if(() => {
            code.get(bits);
            shifted(() => code.get(stripEnd).get(word).op("i32.sub"));
            code.i64(-1n).op("i64.xor").op("i64.and").set(bits).get(stripEnd).set(row);
          });
          code.block((empty) =>
            code.loop((again) => {
              code.get(bits).op("i64.eqz").brIf(empty);
              code.get(word).get(bits).op("i64.ctz").op("i32.wrap_i64").op("i32.add").set(at);
              this.loadRow(nodes, at);
              body(at);
              code.get(bits).get(bits).i64(1n).op("i64.sub").op("i64.and").set(bits).br(again);
            })
          );
          code.br(next);
        })
      );
    }, strips);
  }

  /**
   * Emits loops over rows. `bodies` have the number of rows of a round and its code, which reads rows from local `row` on; the last one takes one row.
   */
  unrolledRows(bodies: readonly { rowsAtOnce: number; body: (row: number) => void }[]): void {
    const { code } = this;
    this.strips((row, stripEnd) => {
      for (const { rowsAtOnce, body } of bodies) {
        code.block((done) =>
          code.loop((again) => {
            code.get(row).i32(rowsAtOnce).op("i32.add").get(stripEnd).op("i32.gt_s").brIf(done);
            body(row);
            code.get(row).i32(rowsAtOnce).op("i32.add").set(row).br(again);
          })
        );
      }
    });
  }

  /** Pushes the values of a 32-bit column for four rows, from `row + ahead` on. */
  pushFour(input: number, row: number, ahead: number): void {
    this.address(this.primary[input]!, row, 4).memory("v128.load", 4 * ahead);
  }

  /** Sets `bits` for eight rows. */
  private wideBits(predicate: IrNode, row: number, bits: number): void {
    const { code } = this;
    for (let pair = 0; pair < GROUP_ROWS / 2; pair++) {
      const scope = this.laneScope();
      this.loadLanes([predicate], row, pair, scope);
      lowerMask(predicate, scope);
      code.op("i64x2.bitmask");
      if (pair > 0) code.i32(2 * pair).op("i32.shl").get(bits).op("i32.or");
      code.set(bits);
    }
  }

  /** Sets `bits` for sixteen rows. Constants are loaded into lanes before the loops. */
  private narrowBits(predicate: IrNode): (row: number, bits: number) => void {
    const { code } = this;
    const constants = new Map<number, number>();
    for (const k of inputsOf([predicate])) {
      if (this.inputs[k].kind !== "constant") continue;
      const local = code.local("v128");
      code.get(this.primary[k]!).op("i32x4.splat").set(local);
      constants.set(k, local);
    }
    return (row, bits) => {
      const quarter = (k: number) =>
        lowerNarrow(predicate, code, (index) => {
          const constant = constants.get(index);
          if (constant !== undefined) code.get(constant);
          else this.pushFour(index, row, 4 * k);
        });
      for (const half of [0, 2]) {
        quarter(half);
        quarter(half + 1);
        code.op("i16x8.narrow_i32x4_s");
      }
      code.op("i8x16.narrow_i16x8_s").op("i8x16.bitmask").set(bits);
    };
  }

  private groups(
    predicate: IrNode,
    nodes: readonly IrNode[],
    row: number,
    stripEnd: number,
    body: (row: number) => void,
    groupRows: number,
    bitsOf: (row: number, bits: number) => void,
  ): void {
    const { code } = this;
    const bits = code.local("i32"), at = code.local("i32");
    code.block((done) =>
      code.loop((next) => {
        code.get(row).get(stripEnd).op("i32.ge_s").brIf(done);
        code.get(row).i32(groupRows).op("i32.add").get(stripEnd).op("i32.le_s").if(() => {
          bitsOf(row, bits);
        }, () => {
          code.i32(0).set(bits);
          code.get(row).set(at);
          code.loop((again) => {
            this.loadRow([predicate], at);
            this.lower(predicate);
            code.i32(0).op("i32.ne").get(at).get(row).op("i32.sub").op("i32.shl").get(bits).op("i32.or").set(bits);
            code.get(at).i32(1).op("i32.add").tee(at).get(stripEnd).op("i32.lt_s").brIf(again);
          });
        });
        code.block((empty) =>
          code.loop((again) => {
            code.get(bits).op("i32.eqz").brIf(empty);
            code.get(row).get(bits).op("i32.ctz").op("i32.add").set(at);
            this.loadRow(nodes, at);
            body(at);
            code.get(bits).get(bits).i32(1).op("i32.sub").op("i32.and").set(bits).br(again);
          })
        );
        code.get(row).i32(groupRows).op("i32.add").set(row).br(next);
      })
    );
    // A group may extend beyond the strip's end, which then is the end of the rows.
  }

  /** Returns the i32 on the stack as the function's result, and ends the module. */
  finish(): Uint8Array<ArrayBuffer> {
    return this.module.finish();
  }
}

/** Only a statement with thousands of expressions reaches V8's limits (50,000 locals, 7.5 MB for a function). */
function compiled(bytes: Uint8Array<ArrayBuffer>): WebAssembly.Module {
  try {
    return new WebAssembly.Module(bytes);
  } catch (error) {
    if (!/too large|> maximum|exceeds/.test((error as Error).message)) throw error;
    throw new SqlError(
      "The statement is too complex: it has too many expressions for a kernel",
      0,
      SQLSTATE.programLimitExceeded,
    );
  }
}

interface CachedKernel {
  run: Kernel;
  cells: Record<string, number>;
  sizeBytes: number;
}

/**
 * Caches modules, which executions of equal kernels share. They are bounded in number and in bytes: usual modules have some
 * kilobytes, but those of statements with thousands of expressions have megabytes, and machine code is larger still.
 */
export class KernelCache {
  private readonly entries = new Map<string, CachedKernel>();
  private sizeBytes = 0;
  /** The counters are shared by all threads. */
  private readonly words: Int32Array;

  constructor(
    private readonly memory: WebAssembly.Memory,
    private readonly capacity = 512,
    private readonly bytesMax = 4 << 20,
  ) {
    this.words = new Int32Array(memory.buffer);
  }

  get(
    key: string,
    build: () => { bytes: Uint8Array<ArrayBuffer>; cells: Record<string, number> },
  ): { run: Kernel; cells: Record<string, number> } {
    let found = this.entries.get(key);
    if (found !== undefined) {
      this.entries.delete(key); // move to the end: the least recently used entry is first
      Atomics.add(this.words, SHARED_WORD.kernelsReused, 1);
    } else {
      const { bytes, cells } = build();
      const instance = new WebAssembly.Instance(compiled(bytes), {
        env: { memory: this.memory, poll: pollQuery },
      });
      // The key can be as long as the module.
      found = { run: instance.exports.run as Kernel, cells, sizeBytes: bytes.length + key.length };
      Atomics.add(this.words, SHARED_WORD.kernelsCompiled, 1);
      this.sizeBytes += found.sizeBytes;
    }
    this.entries.set(key, found);
    while (this.entries.size > this.capacity || (this.sizeBytes > this.bytesMax && this.entries.size > 1)) {
      this.dropOldest();
    }
    return found;
  }

  private dropOldest(): void {
    const [key, { sizeBytes }] = this.entries.entries().next().value!;
    this.entries.delete(key);
    this.sizeBytes -= sizeBytes;
  }
}

export type Kernel = (block: number, start: number, end: number) => number;

const caches = new WeakMap<WebAssembly.Memory, KernelCache>();

/** The cache of this thread for kernels over `memory`. */
export function kernelCache(memory: WebAssembly.Memory): KernelCache {
  let cache = caches.get(memory);
  if (cache === undefined) caches.set(memory, cache = new KernelCache(memory));
  return cache;
}

export { shapeOf };
export const KERNEL_CELLS = { cancel: CANCEL_CELL, firstInput: FIRST_INPUT_CELL };
