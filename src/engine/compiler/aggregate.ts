/**
 * Kernels of grouping. A group is a record of 8-byte words:
 *
 *     header    dense: group number + 1 in the low half, ordinal of first appearance in the high half; hash: none
 *     keys      hash: the words that distinguish groups (texts as address | length << 32)
 *     states    of the aggregates, one word each
 *
 * single   no keys: one record, whose states are in locals (and in lanes) while rows are processed
 * dense    keys with few possible values: records are indexed by group number; `list` has the numbers in order of first appearance
 * hash     records are in order of first appearance; buckets of (hash, record + 1) find them: `hash-groups.ts`
 */
import type { FusedAggregate } from "../../sql/functions/entry.ts";
import { type ColumnForm, FORM_WIDTH, type Input } from "./expression.ts";
import { f32, f64, i32, i64, type IrNode, text, type WasmType } from "./ir.ts";
import { inputShape, type Kernel, kernelCache, KernelWriter, shapeOf, storeOf } from "./kernel.ts";
import { inputsOf, type LaneScope, lowerLanes, lowerMask } from "./lower.ts";

export interface AggregateShape {
  aggregate: FusedAggregate;
  /** Identifies the entry in cache keys: the function's id. */
  id: string;
  types: string[];
  args: IrNode[];
  /** States of a group after its first row, if they differ from the aggregate's start values. */
  initial?: IrNode[];
}

/** Conversion of a key column to words and back. */
export interface KeyShape {
  words: IrNode[];
  isText: boolean;
  /** Output: form of a one-word key, or 16- and 32-byte copies. */
  form: ColumnForm | undefined;
}

/** A dense key: value + bias is in 0 … size-1. */
export interface DenseKey {
  node: IrNode;
  bias: number;
  size: IrNode;
  form: ColumnForm;
}

export interface CompiledKernel {
  run: Kernel;
  cells: Record<string, number>;
}

interface StateSlot {
  type: WasmType;
  initial: number | bigint;
}

export function statesOf(aggregates: readonly Pick<AggregateShape, "aggregate" | "types">[]): StateSlot[][] {
  return aggregates.map(({ aggregate, types }) => aggregate.state(types));
}

/** Bytes of a record. */
export function strideOf(
  headerWords: number,
  aggregates: readonly Pick<AggregateShape, "aggregate" | "types">[],
): number {
  return 8 * (headerWords + statesOf(aggregates).flat().length);
}

export function aggregateKey(aggregates: readonly AggregateShape[]): string {
  return aggregates.map(({ id, args, initial }) => `${id}[${args.map(shapeOf)}]${initial?.map(shapeOf) ?? ""}`).join(
    ";",
  );
}

function constant({ type, initial }: StateSlot): IrNode {
  switch (type) {
    case "i32":
      return i32.const(Number(initial));
    case "i64":
      return i64.const(BigInt(initial));
    case "f32":
      return f32.const(Number(initial));
    case "f64":
      return f64.const(Number(initial));
  }
}

/** The most memory that a group takes for a text: see `Records.keep`. */
function mostBytes(value: IrNode): IrNode {
  return i32.shl(text.sizeBytes(value), i32.const(1));
}

/** Emits the code that updates and merges records in memory. */
export class Records {
  private readonly slots: StateSlot[][];
  private readonly args: IrNode[][];
  private readonly states: { node: IrNode; local: number }[][];
  private readonly updates: IrNode[][];

  constructor(
    private readonly writer: KernelWriter,
    private readonly aggregates: readonly AggregateShape[],
    private readonly headerWords: number,
  ) {
    this.slots = statesOf(aggregates);
    this.args = aggregates.map(({ args }) => args.map((arg) => writer.derive(arg)));
    this.states = this.slots.map((list) => list.map(({ type }) => writer.local(type)));
    this.updates = aggregates.map(({ aggregate, types }, k) =>
      aggregate.update(this.states[k].map((s) => s.node), this.args[k], types)
    );
  }

  /** Inputs that the updates read, without the states. */
  get nodes(): IrNode[] {
    return [
      ...this.updates.flat(),
      ...this.keptTexts().map(({ value }) => value),
      ...this.aggregates.flatMap((aggregate) => aggregate.initial ?? []),
    ];
  }

  /** The aggregates that keep texts, with their arguments. */
  private keptTexts() {
    return this.aggregates.flatMap(({ aggregate: { replaces } }, k) =>
      replaces === undefined ? [] : [{ k, replaces, value: this.args[k][0] }]
    );
  }

  /** The most memory that each text of a row takes. */
  get rowTextBytes(): IrNode[] {
    return this.keptTexts().map(({ value }) => mostBytes(value));
  }

  /** The same for a record that is merged. */
  mergedTextBytes(later: number): IrNode[] {
    return this.keptTexts().map(({ k }) => mostBytes(this.stateAt(later, k)));
  }

  private stateAt(record: number, k: number): IrNode {
    const { node, local } = this.writer.local("i64");
    this.writer.code.get(record).memory("i64.load", this.offset(k, 0)).set(local);
    return node;
  }

  /** Copies the texts of a row that replace those of the record. `next`: the local of the next free address. */
  keepTexts(record: number, next: number): void {
    for (const { k, replaces, value } of this.keptTexts()) this.keep(record, k, value, replaces, next);
  }

  /** Copies the texts of another record that replace those of the record. */
  mergeTexts(record: number, later: number, next: number): void {
    for (const { k, replaces } of this.keptTexts()) this.keep(record, k, this.stateAt(later, k), replaces, next);
  }

  /** Sets the texts of a record as before its first row: they are those of the record that it is a copy of. */
  forgetTexts(record: number): void {
    const { code } = this.writer;
    for (const { k } of this.keptTexts()) {
      this.slots[k].forEach((slot, state) => {
        code.get(record);
        this.writer.lower(constant(slot));
        code.memory("i64.store", this.offset(k, state));
      });
    }
  }

  /** Takes over the texts of another record, with their memory, if they replace those of the record. */
  takeTexts(record: number, later: number): void {
    const { code } = this.writer;
    for (const { k, replaces } of this.keptTexts()) {
      this.writer.lower(replaces(this.stateAt(record, k), this.stateAt(later, k)));
      code.if(() => {
        for (const state of [0, 1]) {
          code.get(record).get(later).memory("i64.load", this.offset(k, state));
          code.memory("i64.store", this.offset(k, state));
        }
      });
    }
  }

  /** A text that replaces a shorter one gets more memory, so that the bytes of former texts do not add up. */
  private keep(
    record: number,
    k: number,
    value: IrNode,
    replaces: (kept: IrNode, text: IrNode) => IrNode,
    next: number,
  ): void {
    const { writer } = this, { code } = writer, length = code.local("i32"), room = code.local("i64");
    const taken = writer.local("i64"), kept = this.stateAt(record, k);
    writer.lower(value);
    code.set(taken.local);
    writer.lower(replaces(kept, taken.node));
    code.if(() => {
      writer.lower(text.length(taken.node));
      code.tee(length).i32(0).op("i32.gt_s").if(() => {
        code.get(record).memory("i64.load", this.offset(k, 1)).tee(room).i64(32n).op("i64.shr_u").op("i32.wrap_i64");
        code.get(length).op("i32.lt_u").if(() => {
          // The first text has just its memory.
          const size = code.local("i32");
          code.get(length).get(length).i32(1).op("i32.shl").get(room).op("i64.eqz").op("select").set(size);
          code.get(next).op("i64.extend_i32_u").get(size).op("i64.extend_i32_u").i64(32n).op("i64.shl");
          code.op("i64.or").set(room).get(record).get(room).memory("i64.store", this.offset(k, 1));
          code.get(next).get(size).op("i32.add").set(next);
        });
        code.get(room).op("i32.wrap_i64");
        writer.lower(text.address(taken.node));
        code.get(length).memoryCopy();
        code.get(room).i64(0xFFFFFFFFn).op("i64.and").get(length).op("i64.extend_i32_u").i64(32n).op("i64.shl");
        code.op("i64.or").set(taken.local);
      });
      code.get(record).get(taken.local).memory("i64.store", this.offset(k, 0));
    });
  }

  private offset(aggregate: number, state: number): number {
    let index = state;
    for (let k = 0; k < aggregate; k++) index += this.slots[k].length;
    return 8 * (this.headerWords + index);
  }

  initialise(record: number): void {
    const { code } = this.writer;
    this.slots.forEach((list, k) =>
      list.forEach((slot, s) => {
        code.get(record);
        this.writer.lower(this.aggregates[k].initial?.[s] ?? constant(slot));
        code.memory(`${slot.type}.store`, this.offset(k, s));
      })
    );
  }

  /**
   * Nulls are rare, so one test that no argument is null allows updates without a select between old and new states.
   */
  update(record: number): void {
    const { code } = this.writer;
    const conditions = new Map<string, IrNode>();
    const plain = this.updates.map((nodes, k) =>
      nodes.map((node, s) => {
        const state = this.states[k][s].node;
        const masked = node.op === "select" && node.args[2].op === "input" && node.args[2].value === state.value;
        if (!masked || this.readsStates(node.args[0])) return node;
        conditions.set(shapeOf(node.args[0]), node.args[0]);
        return node.args[1];
      })
    );
    if (conditions.size === 0) return this.updateBy(this.updates, record);
    this.writer.lower([...conditions.values()].reduce((a, b) => i32.and(a, b)));
    code.if(() => this.updateBy(plain, record), () => this.updateBy(this.updates, record));
  }

  private readsStates(node: IrNode): boolean {
    const own = new Set(this.states.flat().map((state) => state.node.value));
    return inputsOf([node]).some((index) => own.has(index));
  }

  private updateBy(updates: readonly IrNode[][], record: number): void {
    const { code } = this.writer;
    this.aggregates.forEach((_, k) => {
      const states = this.states[k];
      // A state that no update reads is not loaded.
      const read = new Set(inputsOf(updates[k].filter((node, s) => node !== states[s].node)));
      states.forEach(({ local, node }, s) => {
        if (read.has(node.value as number)) {
          code.get(record).memory(`${this.slots[k][s].type}.load`, this.offset(k, s)).set(local);
        }
      });
      this.storeAll(updates[k], states, (s) => this.offset(k, s), k, record);
    });
  }

  /** Merges the states of `later` into those of `record`. */
  merge(record: number, later: number): void {
    const { code } = this.writer;
    const others = this.slots.map((list, k) =>
      list.map(({ type }, s) => {
        const { node, local } = this.writer.local(type);
        code.get(later).memory(`${type}.load`, this.offset(k, s)).set(local);
        return node;
      })
    );
    this.mergeStates(record, others);
  }

  /** Merges given states, of later rows, into those of `record`. */
  mergeStates(record: number, later: readonly IrNode[][]): void {
    const { code } = this.writer;
    this.aggregates.forEach(({ aggregate, types }, k) => {
      const states = this.states[k];
      states.forEach(({ local }, s) =>
        code.get(record).memory(`${this.slots[k][s].type}.load`, this.offset(k, s)).set(local)
      );
      const merged = aggregate.merge(states.map((s) => s.node), later[k], types);
      this.storeAll(merged, states, (s) => this.offset(k, s), k, record);
    });
  }

  private storeAll(
    nodes: IrNode[],
    states: { node: IrNode; local: number }[],
    offset: (s: number) => number,
    k: number,
    record: number,
  ): void {
    const { code } = this.writer;
    // All new states are computed from the old ones before the first is stored.
    nodes.forEach((node, s) => {
      if (node === states[s].node) return;
      code.get(record);
      this.writer.lower(node);
      code.memory(`${this.slots[k][s].type}.store`, offset(s));
    });
  }

  finish(k: number, record: number): IrNode {
    const { code } = this.writer;
    const states = this.states[k];
    states.forEach(({ local }, s) =>
      code.get(record).memory(`${this.slots[k][s].type}.load`, this.offset(k, s)).set(local)
    );
    const { aggregate, types } = this.aggregates[k];
    return aggregate.finish(states.map((s) => s.node), types);
  }
}

// ---- no keys

/**
 * Cell `record`: address of the one record, which the caller initialises. `ofAnyBatches`: sums of floats are the same whatever rows a call
 * processes; otherwise each call adds up its rows in lanes.
 */
export function singleKernel(
  memory: WebAssembly.Memory,
  inputs: readonly Input[],
  predicate: IrNode | undefined,
  aggregates: readonly AggregateShape[],
  ofAnyBatches = false,
): CompiledKernel {
  const key = `single|${inputShape(inputs)}|${predicate ? shapeOf(predicate) : ""}|${
    aggregateKey(aggregates)
  }|${ofAnyBatches}`;
  return kernelCache(memory).get(key, () => buildSingle(memory, inputs, predicate, aggregates, ofAnyBatches));
}

const LANE_STATES_MAX = 12;

function buildSingle(
  memory: WebAssembly.Memory,
  inputs: readonly Input[],
  predicate: IrNode | undefined,
  aggregates: readonly AggregateShape[],
  ofAnyBatches: boolean,
) {
  const writer = new KernelWriter(memory, inputs);
  const { code } = writer;
  const cells: Record<string, number> = { record: writer.cell() };
  cells.count = writer.cellCount;
  const record = writer.loadCell("i32", cells.record);
  const slots = statesOf(aggregates);
  const flat = slots.flat();
  const args = aggregates.map((a) => a.args.map((arg) => writer.derive(arg)));

  const scalars = slots.map((list) => list.map(({ type }) => writer.local(type)));
  const updatesOf = (states: { node: IrNode }[][]) =>
    aggregates.map(({ aggregate, types }, k) => aggregate.update(states[k].map((s) => s.node), args[k], types));
  const scalarUpdates = updatesOf(scalars);
  // Arguments that no update reads are not loaded: they may have no lanes. An example is count of a type without null.
  const nodes = scalarUpdates.flat();
  let word = 0;
  const offsets = slots.map((list) => list.map(() => 8 * word++));
  scalars.forEach((list, k) =>
    list.forEach(({ local }, s) => code.get(record).memory(`${slots[k][s].type}.load`, offsets[k][s]).set(local))
  );

  const assign = (updates: IrNode[][], states: { node: IrNode; local: number }[][]) => {
    updates.forEach((list, k) => {
      const changed = list.map((node, s) => ({ node, s })).filter(({ node, s }) => node !== states[k][s].node);
      for (const { node } of changed) writer.lower(node);
      for (const { s } of changed.reverse()) code.set(states[k][s].local);
    });
  };

  const sets = predicate === undefined
    ? Math.max(1, Math.min(4, Math.floor(LANE_STATES_MAX / Math.max(1, flat.length))))
    : 4;
  const accumulators = predicate === undefined
    ? sets
    : Math.max(1, Math.min(4, Math.floor(LANE_STATES_MAX / Math.max(1, flat.length))));
  const laneSets = Array.from(
    { length: accumulators },
    () => slots.map((list) => list.map(({ type }) => writer.laneLocal(type))),
  );
  const laneUpdates = laneSets.map(updatesOf);
  const isExact = flat.every(({ type }) => type !== "f64" && type !== "f32");
  // Symbol predicates are selective, so visiting only matching rows beats SIMD masking.
  const laneable = flat.length > 0 && !writer.isSelective(predicate) && !aggregates.some((a) => a.aggregate.ordered) &&
    (isExact || !ofAnyBatches) &&
    writer.hasLanes([...laneUpdates[0].flat(), ...(predicate === undefined ? [] : [predicate])]);

  if (!laneable) {
    writer.scalarRows(predicate, nodes, () => assign(scalarUpdates, scalars));
  } else {
    writer.splatConstants();
    for (const set of laneSets) {
      set.forEach((list, k) =>
        list.forEach(({ local }, s) => {
          const { type, initial } = slots[k][s];
          if (type === "f64" || type === "f32") code.splatF64(Number(initial));
          else code.splat64(BigInt(initial));
          code.set(local);
        })
      );
    }
    const masks = Array.from({ length: sets }, () => code.local("v128"));
    const updatePair = (row: number, pair: number, masked: boolean) => {
      const scope = writer.laneScope();
      writer.loadLanes(nodes, row, pair, scope);
      const conditions = new Map<string, number>();
      const states = laneSets[pair % accumulators], updates = laneUpdates[pair % accumulators];
      updates.forEach((list, k) => {
        const changed = list.map((node, s) => ({ node, s })).filter(({ node, s }) => node !== states[k][s].node);
        for (const { node, s } of changed) {
          updateLanes(node, states[k][s], scope, masked ? masks[pair] : undefined, conditions);
        }
        for (const { s } of changed.reverse()) code.set(states[k][s].local);
      });
    };
    const maskOf = (row: number, pair: number) => {
      const scope = writer.laneScope();
      writer.loadLanes([predicate!], row, pair, scope);
      lowerMask(predicate!, scope);
      code.tee(masks[pair]);
    };
    writer.strips((row, stripEnd) => {
      code.block((done) =>
        code.loop((again) => {
          code.get(row).i32(2 * sets).op("i32.add").get(stripEnd).op("i32.gt_s").brIf(done);
          if (predicate === undefined) { for (let pair = 0; pair < sets; pair++) updatePair(row, pair, false); }
          else {
            for (let pair = 0; pair < sets; pair++) {
              maskOf(row, pair);
              if (pair > 0) code.op("v128.or");
            }
            code.op("v128.any_true").if(() => {
              for (let pair = 0; pair < sets; pair++) updatePair(row, pair, true);
            });
          }
          code.get(row).i32(2 * sets).op("i32.add").set(row).br(again);
        })
      );
      // The remaining rows of the last strip.
      writer.eachRow(predicate, nodes, row, stripEnd, () => assign(scalarUpdates, scalars));
    });
    // Lanes are merged in a fixed order, so that sums of floats do not change from run to run.
    const others = slots.map((list) => list.map(({ type }) => writer.local(type)));
    const merges = aggregates.map(({ aggregate, types }, k) =>
      aggregate.merge(scalars[k].map((s) => s.node), others[k].map((s) => s.node), types)
    );
    for (const set of laneSets) {
      for (const lane of [0, 1]) {
        set.forEach((list, k) =>
          list.forEach(({ local }, s) => {
            const { type } = slots[k][s];
            code.get(local).lane(type === "f64" || type === "f32" ? "f64x2.extract_lane" : "i64x2.extract_lane", lane);
            if (type === "i32") code.op("i32.wrap_i64");
            if (type === "f32") code.op("f32.demote_f64");
            code.set(others[k][s].local);
          })
        );
        assign(merges, scalars);
      }
    }
  }
  scalars.forEach((list, k) =>
    list.forEach(({ local }, s) => code.get(record).get(local).memory(`${slots[k][s].type}.store`, offsets[k][s]))
  );
  code.get(writer.end);
  return { bytes: writer.finish(), cells };
}

/**
 * Leaves a state's new lanes on the stack; rows outside `mask` keep the old value. Masked sums and extremes are the
 * common case: the mask clears the addend, or turns it into a NaN that no comparison selects. That is much cheaper than
 * a select between old and new values.
 */
function updateLanes(
  node: IrNode,
  state: { node: IrNode; local: number },
  scope: LaneScope,
  mask: number | undefined,
  conditions: Map<string, number>,
): void {
  const { code } = scope;
  const isState = (other: IrNode) => other.op === "input" && other.value === state.node.value;
  const condition = node.op === "select" && isState(node.args[2]) ? node.args[0] : undefined;
  const step = condition === undefined ? node : node.args[1];
  const [type, name] = step.op.split(".");
  const simple = step.args.length === 2 && isState(step.args[0]);
  const pushMask = () => {
    if (condition !== undefined) {
      // Aggregates over the same column mostly share this condition.
      const key = shapeOf(condition), known = conditions.get(key);
      if (known !== undefined) code.get(known);
      else {
        const local = code.local("v128");
        lowerMask(condition, scope);
        code.tee(local);
        conditions.set(key, local);
      }
    }
    if (mask !== undefined) code.get(mask);
    if (condition !== undefined && mask !== undefined) code.op("v128.and");
  };
  const isMasked = condition !== undefined || mask !== undefined;
  if (simple && name === "add" && (type === "f64" || type === "i64")) {
    const [, value] = step.args;
    code.get(state.local);
    if (isMasked && value.op === "i64.const" && value.value === 1n) {
      pushMask(); // all bits set are -1
      code.op("i64x2.sub");
      return;
    }
    lowerLanes(value, scope);
    if (isMasked) {
      pushMask();
      code.op("v128.and");
    }
    code.op(`${type}x2.add`);
    return;
  }
  if (simple && type === "f64" && (name === "min" || name === "max") && condition !== undefined) {
    code.get(state.local);
    lowerLanes(step.args[1], scope);
    pushMask();
    code.op("v128.not").op("v128.or").op(`f64x2.p${name}`); // keeps the first operand unless the second is beyond it
    return;
  }
  lowerLanes(node, scope);
  if (mask !== undefined) code.get(state.local).get(mask).op("v128.bitselect");
}

// ---- dense keys

/**
 * Cells: `table` (zeroed before the first run), `list` (i32 group numbers), `groups` (their count, kept between runs),
 * and with `numbers` the address of an i32 column that receives the group ordinal of each row.
 */
export function denseKernel(
  memory: WebAssembly.Memory,
  inputs: readonly Input[],
  predicate: IrNode | undefined,
  keys: readonly DenseKey[],
  aggregates: readonly AggregateShape[],
  numbers: boolean,
): CompiledKernel {
  const keyText = keys.map((k) => `${shapeOf(k.node)}+${k.bias}*${shapeOf(k.size)}`).join(",");
  const key = `dense${numbers}|${inputShape(inputs)}|${predicate ? shapeOf(predicate) : ""}|${keyText}|${
    aggregateKey(aggregates)
  }`;
  return kernelCache(memory).get(key, () => {
    const writer = new KernelWriter(memory, inputs);
    const { code } = writer;
    const cells: Record<string, number> = {
      table: writer.cell(),
      list: writer.cell(),
      groups: writer.cell(),
      numbers: writer.cell(),
    };
    cells.count = writer.cellCount;
    const table = writer.loadCell("i32", cells.table),
      list = writer.loadCell("i32", cells.list),
      groups = writer.loadCell("i32", cells.groups);
    const numberColumn = numbers ? writer.loadCell("i32", cells.numbers) : -1;
    const records = new Records(writer, aggregates, 1);
    const stride = strideOf(1, aggregates);
    const number = writer.derive(groupNumber(keys));
    const slot = code.local("i32"), header = code.local("i64");
    writer.scalarRows(predicate, [number, ...records.nodes], (row) => {
      code.get(table);
      writer.lower(number);
      code.i32(stride).op("i32.mul").op("i32.add").tee(slot).memory("i64.load").tee(header).op("i64.eqz").if(() => {
        code.get(slot);
        writer.lower(i64.extendU(i32.add(number, i32.const(1))));
        code.get(groups).op("i64.extend_i32_u").i64(32n).op("i64.shl").op("i64.or").tee(header).memory("i64.store");
        code.get(list).get(groups).i32(2).op("i32.shl").op("i32.add");
        writer.lower(number);
        code.memory("i32.store");
        code.get(groups).i32(1).op("i32.add").set(groups);
        records.initialise(slot);
      });
      records.update(slot);
      if (numbers) {
        code.get(numberColumn).get(row).i32(2).op("i32.shl").op("i32.add");
        code.get(header).i64(32n).op("i64.shr_u").op("i32.wrap_i64").memory("i32.store");
      }
    });
    writer.storeCell("i32", cells.groups, groups);
    code.get(writer.end);
    return { bytes: writer.finish(), cells };
  });
}

/** The number of a row's group in a dense table. */
export function groupNumber(keys: readonly DenseKey[]): IrNode {
  return keys.map(({ node, bias }) => (bias === 0 ? node : i32.add(node, i32.const(bias)))).reduce((number, part, k) =>
    i32.add(i32.mul(number, keys[k].size), part)
  );
}

/**
 * Merges the groups of a later dense table. Rows are indices in the later table's list. Cells: table, list, groups,
 * laterTable, laterList.
 */
export function denseMergeKernel(memory: WebAssembly.Memory, aggregates: readonly AggregateShape[]): CompiledKernel {
  return kernelCache(memory).get(`denseMerge|${aggregateKey(withoutArgs(aggregates))}`, () => {
    const writer = new KernelWriter(memory, []);
    const { code } = writer;
    const cells: Record<string, number> = {
      table: writer.cell(),
      list: writer.cell(),
      groups: writer.cell(),
      laterTable: writer.cell(),
      laterList: writer.cell(),
    };
    cells.count = writer.cellCount;
    const [table, list, groups, laterTable, laterList] = ["table", "list", "groups", "laterTable", "laterList"].map((
      name,
    ) => writer.loadCell("i32", cells[name]));
    const records = new Records(writer, withoutArgs(aggregates), 1);
    const stride = strideOf(1, aggregates);
    const number = code.local("i32"), slot = code.local("i32"), later = code.local("i32");
    writer.scalarRows(undefined, [], (row) => {
      code.get(laterList).get(row).i32(2).op("i32.shl").op("i32.add").memory("i32.load").tee(number);
      code.i32(stride).op("i32.mul").get(laterTable).op("i32.add").set(later);
      code.get(number).i32(stride).op("i32.mul").get(table).op("i32.add").tee(slot).memory("i64.load").op("i64.eqz").if(
        () => {
          code.get(slot).get(later).i32(stride).memoryCopy();
          // Replace the ordinal by the one in this table.
          code.get(slot).get(groups).memory("i32.store", 4);
          code.get(list).get(groups).i32(2).op("i32.shl").op("i32.add").get(number).memory("i32.store");
          code.get(groups).i32(1).op("i32.add").set(groups);
        },
        () => records.merge(slot, later),
      );
    });
    writer.storeCell("i32", cells.groups, groups);
    code.get(writer.end);
    return { bytes: writer.finish(), cells };
  });
}

/** For kernels that process states but no rows. */
export function withoutArgs(aggregates: readonly AggregateShape[]): AggregateShape[] {
  return aggregates.map((a) => ({
    ...a,
    args: [],
    initial: undefined,
    aggregate: { ...a.aggregate, update: (states: IrNode[]) => states },
  }));
}

/**
 * Merges later single records into the first. Rows are records; cells: record, laters (the contiguous later records).
 */
export function singleMergeKernel(memory: WebAssembly.Memory, aggregates: readonly AggregateShape[]): CompiledKernel {
  return kernelCache(memory).get(`singleMerge|${aggregateKey(withoutArgs(aggregates))}`, () => {
    const writer = new KernelWriter(memory, []);
    const { code } = writer;
    const cells: Record<string, number> = { record: writer.cell(), laters: writer.cell() };
    cells.count = writer.cellCount;
    const record = writer.loadCell("i32", cells.record), laters = writer.loadCell("i32", cells.laters);
    const records = new Records(writer, withoutArgs(aggregates), 0);
    const later = code.local("i32"), stride = strideOf(0, aggregates);
    writer.scalarRows(undefined, [], (row) => {
      code.get(row).i32(stride).op("i32.mul").get(laters).op("i32.add").set(later);
      records.merge(record, later);
    });
    code.get(writer.end);
    return { bytes: writer.finish(), cells };
  });
}

// ---- updates by group number

/** Updates states indexed by the group number in column `group`. Cell: states. */
export function byGroupKernel(
  memory: WebAssembly.Memory,
  inputs: readonly Input[],
  group: IrNode,
  aggregates: readonly AggregateShape[],
): CompiledKernel {
  const key = `byGroup|${inputShape(inputs)}|${shapeOf(group)}|${aggregateKey(aggregates)}`;
  return kernelCache(memory).get(key, () => {
    const writer = new KernelWriter(memory, inputs);
    const { code } = writer;
    const cells: Record<string, number> = { states: writer.cell() };
    cells.count = writer.cellCount;
    const states = writer.loadCell("i32", cells.states);
    const records = new Records(writer, aggregates, 0);
    const record = code.local("i32");
    writer.scalarRows(undefined, [group, ...records.nodes], () => {
      writer.lower(group);
      code.i32(strideOf(0, aggregates)).op("i32.mul").get(states).op("i32.add").set(record);
      records.update(record);
    });
    code.get(writer.end);
    return { bytes: writer.finish(), cells };
  });
}

/** Sets the states of groups start … end-1 to their start values. Cell: states. */
export function initialiseKernel(
  memory: WebAssembly.Memory,
  headerWords: number,
  aggregates: readonly AggregateShape[],
): CompiledKernel {
  return kernelCache(memory).get(`initialise${headerWords}|${aggregateKey(withoutArgs(aggregates))}`, () => {
    const writer = new KernelWriter(memory, []);
    const { code } = writer;
    const cells: Record<string, number> = { states: writer.cell() };
    cells.count = writer.cellCount;
    const states = writer.loadCell("i32", cells.states);
    const records = new Records(writer, withoutArgs(aggregates), headerWords);
    const record = code.local("i32");
    writer.scalarRows(undefined, [], (row) => {
      code.get(row).i32(strideOf(headerWords, aggregates)).op("i32.mul").get(states).op("i32.add").set(record);
      records.initialise(record);
    });
    code.get(writer.end);
    return { bytes: writer.finish(), cells };
  });
}

// ---- results

export type KeyOutput =
  /** A key of a hash record: `words` words, beginning with `word`. */
  | { kind: "words"; word: number; words: number; form: ColumnForm | undefined }
  /** A part of a dense group number, which comes from the list or (plus 1) from the record's word. */
  | { kind: "dense"; word?: number; divisor: number; size: number; bias: number; form: ColumnForm };

/**
 * Converts records to columns. Rows are groups in order. `list` says where the records are: "none": contiguous from
 * `records`; "numbers": indexed by the group numbers in `list`; "addresses": at the addresses in `list`. Cells:
 * records, list, key0 …, out0 … Aggregates beyond `forms` have no output column.
 */
export function finishKernel(
  memory: WebAssembly.Memory,
  list: "none" | "numbers" | "addresses",
  headerWords: number,
  keys: readonly KeyOutput[],
  aggregates: readonly AggregateShape[],
  forms: readonly ColumnForm[],
): CompiledKernel {
  const key = `finish${list}${headerWords}|${JSON.stringify(keys)}|${forms}|${aggregateKey(withoutArgs(aggregates))}`;
  return kernelCache(memory).get(key, () => {
    const writer = new KernelWriter(memory, []);
    const { code } = writer;
    const cells: Record<string, number> = { records: writer.cell(), list: writer.cell() };
    const base = writer.loadCell("i32", cells.records), places = writer.loadCell("i32", cells.list);
    const keyColumns = keys.map((_, k) => writer.loadCell("i32", cells[`key${k}`] = writer.cell()));
    const outColumns = forms.map((_, k) => writer.loadCell("i32", cells[`out${k}`] = writer.cell()));
    cells.count = writer.cellCount;
    const stride = strideOf(headerWords, aggregates);
    const records = new Records(writer, withoutArgs(aggregates), headerWords);
    const record = code.local("i32"), number = code.local("i32"), out = code.local("i32");
    const target = (column: number, width: number) => code.get(column).get(out).i32(width).op("i32.mul").op("i32.add");
    writer.scalarRows(undefined, [], (row) => {
      code.get(row).get(writer.start).op("i32.sub").set(out);
      if (list === "none") code.get(row);
      else code.get(places).get(row).i32(2).op("i32.shl").op("i32.add").memory("i32.load");
      code.tee(number);
      if (list !== "addresses") code.i32(stride).op("i32.mul").get(base).op("i32.add");
      code.set(record);
      keys.forEach((spec, k) => {
        if (spec.kind === "dense") {
          target(keyColumns[k], FORM_WIDTH[spec.form]);
          if (spec.word === undefined) code.get(number);
          else code.get(record).memory("i32.load", 8 * spec.word).i32(1).op("i32.sub");
          code.i32(spec.divisor).op("i32.div_u").i32(spec.size).op("i32.rem_u").i32(spec.bias).op("i32.sub").memory(
            storeOf(spec.form),
          );
          return;
        }
        for (let w = 0; w < spec.words; w++) {
          target(keyColumns[k], spec.form === undefined ? 8 * spec.words : FORM_WIDTH[spec.form]);
          code.get(record).memory("i64.load", 8 * (spec.word + w));
          if (spec.form === undefined || FORM_WIDTH[spec.form] === 8) code.memory("i64.store", 8 * w);
          else code.op("i32.wrap_i64").memory(FORM_WIDTH[spec.form] === 4 ? "i32.store" : storeOf(spec.form));
        }
      });
      forms.forEach((_, k) => {
        const result = records.finish(k, record);
        target(outColumns[k], FORM_WIDTH[forms[k]]);
        writer.lower(result);
        code.memory(storeOf(forms[k]));
      });
    });
    code.get(writer.end);
    return { bytes: writer.finish(), cells };
  });
}
