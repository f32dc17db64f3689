/**
 * Evaluates constant expressions like expressions over rows: by the same kernels and batch functions, over one row in a separate
 * memory. This happens while statements are bound and planned, so expensive calls are refused and left to the query's thread.
 */
import { assert } from "../assert.ts";
import type { Expr } from "../sql/plan.ts";
import { createHeap, SHARED_WORD } from "../storage/heap.ts";
import { layoutOf, type Value } from "../types/mod.ts";
import { batchColumn, batchOut, functionContext, propagateNulls } from "./batch-calls.ts";
import { setValue, TextArena, valueAt, Workspace } from "./columns.ts";
import { BoundKernel } from "./compiler/binding.ts";
import { argumentClass, constantBits, emitCall, FORM_TYPE, formOf } from "./compiler/expression.ts";
import { input } from "./compiler/ir.ts";
import { projectKernel } from "./compiler/project.ts";
import type { Constant, FunctionRegistry, QueryContext, QueryMemory } from "./contract.ts";
import { compileExpressions } from "./expressions.ts";
import { workAt } from "./long-texts.ts";

type Call = Extract<Expr, { kind: "call" }>;

/** The environment for which the statement is bound or planned. */
export interface ConstantContext {
  nowMicros?: bigint;
  user?: string;
}

const MEMORY_BYTES = 8 << 20;
/** Total memory of one call. */
const BLOCK_BYTES_MAX = 65_536;
/** Total length of the arguments. Longer texts are left to run time. */
const TEXT_LENGTH_MAX = 16_384;
/** Loops poll about every tenth of a millisecond. */
const POLLS_MAX = 32;
/** Maximum number of cached calls. */
const KNOWN_MAX = 256;

/** A prepared call. Texts that it makes are in `arena` until the next call. */
type Prepared = (call: Call, args: readonly Constant[]) => Value;

export class ConstantCalls {
  private readonly heap = createHeap(MEMORY_BYTES);
  private readonly context: QueryContext;
  private readonly space: Workspace;
  private readonly arena: TextArena;
  private readonly known = new Map<string, Prepared>();
  private now: ConstantContext = {};
  private polls = 0;

  constructor(private readonly functions: FunctionRegistry) {
    this.context = this.createContext();
    this.space = Workspace.of(this.context, "a constant");
    this.arena = new TextArena(this.space);
  }

  /**
   * The value of a call with constant arguments, or of CASE and IN over them. Throws if the query would, or if it takes
   * too long.
   */
  valueOf(expr: Expr, now: ConstantContext): Value {
    this.now = now;
    this.polls = 0;
    const before = workAt(this.context);
    try {
      return expr.kind === "call" ? this.call(expr) : this.expression(expr);
    } finally {
      workAt(before);
      this.arena.release();
    }
  }

  private call(expr: Call): Value {
    let length = 0;
    const args = expr.args.map((arg) => {
      assert(arg.kind === "constant");
      if (typeof arg.value === "string") length += arg.value.length;
      return arg;
    });
    if (length > TEXT_LENGTH_MAX) throw new TooLong();
    const key = `${expr.function}:${expr.type}`;
    let prepared = this.known.get(key);
    if (prepared === undefined) {
      if (this.known.size >= KNOWN_MAX) this.forget();
      this.known.set(key, prepared = this.prepare(expr));
    }
    return prepared(expr, args);
  }

  private forget(): void {
    this.known.clear();
    this.arena.release();
    this.space.release();
  }

  private prepare(expr: Call): Prepared {
    const { entry, types } = this.functions.resolve(expr.function);
    // Symbols are passed as texts, as over rows.
    const tags = types.map((type) => (layoutOf(type) === "symbol" ? "STRING" : type));
    assert(layoutOf(expr.type) !== "symbol", "codes of symbols need a dictionary");
    const kernelTags = types.map((type, k) => (argumentClass(entry, k) === "text" ? tags[k] : type));
    if (entry.emit !== undefined && [expr.type, ...kernelTags].every((tag) => formOf(tag) !== undefined)) {
      return this.kernelCall(expr, kernelTags);
    }
    return this.batchCall(expr, tags);
  }

  private kernelCall(expr: Call, tags: readonly string[]): Prepared {
    const { context, space, arena } = this, { heap } = context;
    const { entry, types } = this.functions.resolve(expr.function);
    const wasmTypes = tags.map((tag) => FORM_TYPE[formOf(tag)!]);
    const inputs = wasmTypes.map((type) => ({ kind: "constant", type, value: 0 }) as const);
    const node = emitCall(entry, wasmTypes.map((type, k) => input(k, type)), types, expr.type, () => false);
    const kernel = projectKernel(heap.memory, inputs, undefined, [{ kind: "value", form: formOf(expr.type)!, node }]);
    const bound = new BoundKernel(kernel, inputs, context, space);
    const address = space.allocate(ROW_BYTES);
    bound.setI32(bound.cells.out0, address);
    return (_, args) => {
      args.forEach((arg, k) => bound.setConstant(k, constantBits(arg.value, tags[k], arena)));
      bound.kernel(bound.block, 0, 1);
      return valueAt(heap, { type: expr.type, address }, 0);
    };
  }

  private batchCall({ function: id, type }: Call, tags: readonly string[]): Prepared {
    const { context, space, arena } = this, { heap } = context;
    const { entry, types } = this.functions.resolve(id);
    const batch = entry.batch ?? entry.wide;
    assert(batch !== undefined, `${id} has neither a kernel form nor a batch form`);
    const rows = tags.map(() => space.allocate(ROW_BYTES)), result = space.allocate(ROW_BYTES);
    return (call, args) => {
      const columns = args.map(({ value }, k) => {
        setValue(heap, tags[k], rows[k], 0, value, arena);
        return batchColumn(context, types[k], tags[k], rows[k], 1, value, true);
      });
      const out = batchOut(context, type, result, 1, arena);
      batch(columns, out, 1, functionContext(context, call));
      if (entry.nulls === "propagate") propagateNulls(context, columns, out, 1);
      return valueAt(heap, { type, address: result }, 0);
    };
  }

  private expression(expr: Expr): Value {
    const compiled = compileExpressions([expr], undefined, [], this.context);
    try {
      return valueAt(this.heap, compiled.run({ rowCount: 1, columns: [] }).columns[0], 0);
    } finally {
      compiled.close();
    }
  }

  private createContext(): QueryContext {
    const { heap, functions } = this;
    const memory: QueryMemory = {
      allocate: (sizeBytes) => {
        memory.need(sizeBytes, "");
        return heap.allocate(sizeBytes, "query");
      },
      free: (address, sizeBytes) => heap.free(address, sizeBytes, "query"),
      account: (sizeBytes) => memory.need(sizeBytes, ""),
      need: (sizeBytes) => {
        if (sizeBytes > BLOCK_BYTES_MAX) throw new TooLong();
      },
      share: () => {},
      onRelease: () => () => {},
      mark: () => new Set(),
      freeSince() {},
      usedBytes: 0,
      limitBytes: 0,
      release: () => {},
    };
    const absent = () => assert(false, "a constant expression reads no columns");
    const nowMicros = () => this.now.nowMicros ?? 0n, user = () => this.now.user ?? "";
    return {
      heap,
      memory,
      functions,
      pool: {
        pin: absent as () => never,
        unpin: absent,
        gather: absent as () => never,
        summaries: absent as () => never,
        selectRows: absent as () => never,
        maskRows: absent as () => never,
        listRows: absent as () => never,
        readOffsets: absent as () => never,
        vectorCounts: absent as () => never,
        gatherRows: absent as () => never,
        takeFrameCounts: absent as () => never,
        firstAt: absent as () => never,
        isIndexed: absent as () => never,
        present: absent as () => never,
        find: absent as () => never,
      },
      sources: [],
      get nowMicros() {
        return nowMicros();
      },
      get user() {
        return user();
      },
      random: absent as () => never,
      poll: () => {
        if (++this.polls > POLLS_MAX) throw new TooLong();
      },
      cancelWord: SHARED_WORD.neverCancelled * 4,
    };
  }
}

/** Size of the widest layout, plus what lanes write beyond it. */
const ROW_BYTES = 64;

class TooLong extends Error {
  constructor() {
    super("the call is too expensive to evaluate during planning");
  }
}
