/**
 * Queries whose answers were small, kept by a query thread with their operators, encoder and memory for the next execution of the same
 * plan. Only one execution has them at a time. The words of a query's slot, through which main cancels it and counts its memory, are inputs:
 * each execution has another request.
 */
import type { Output, OutputOptions } from "../database/output.ts";
import { hasSameDictionaries, isKept, isSameOutput } from "../database/same-run.ts";
import type { FunctionRegistry, Operator, QueryContext } from "../engine/contract.ts";
import type { Letter, ReadRequest } from "../engine/letter.ts";
import { type CountedMemory, flushKernelRows, PlanChanges, type QuerySpill, scansOf } from "../engine/mod.ts";
import { areSameSources, type ReadSource, unpackSources } from "../engine/packed-sources.ts";
import type { SectionRunner } from "../engine/parallel.ts";
import { SLOT, slotWord } from "../engine/slot.ts";
import { remembered } from "../sql/remembered.ts";
import type { Plan } from "../sql/plan.ts";
import type { ScanSource } from "../storage/contract.ts";
import type { PoolLease } from "../storage/mod.ts";

const KEPT_MAX = 64;
const KEPT_BYTES_MAX = 4 << 20;
/** Of a plan: for other encodings and users, and for executions that overlap. */
const VARIANTS_MAX = 4;
/** A query that holds more is not kept. */
const QUERY_BYTES_MAX = 256 << 10;
/** Queries that were not executed for this long are closed. */
const KEPT_IDLE_MS = 5_000;
/** Between two looks for them. */
const LOOK_MS = 1_000;

/** A query's resources on this thread. What depends on the request changes with each execution, also in copies of the context. */
export interface Context extends QueryContext {
  /** Of the present execution. */
  request: ReadRequest;
  memory: CountedMemory;
  pool: PoolLease;
  spill?: QuerySpill;
  leads: boolean;
  nowMicros: bigint;
  cancelWord: number;
  /** Rows that were counted by `countToRead`. */
  rowsToRead: number;
}

/** A query that this worker leads. */
export interface Lead {
  plan: Plan;
  context: Context;
  /** The context of the operators: the same, or a copy with `sections`. */
  operators: Context;
  sections?: SectionRunner;
  options: OutputOptions;
  output: Output;
  operator: Operator;
  /** The result so far, while it is small and nothing has been posted. */
  held?: { pieces: Uint8Array[]; bytes: number; rows: number; since: number };
  /** When its last execution ended. */
  usedMs: number;
}

/** Address of the word that cancels the query. */
export function cancelWordOf({ slot }: ReadRequest): number {
  return slotWord(slot, SLOT.cancel) * Int32Array.BYTES_PER_ELEMENT;
}

export class KeptQueries {
  /** By the plan's number; the most recently used plan last. */
  private readonly kept = new Map<number, Lead[]>();
  private count = 0;
  private bytes = 0;
  private lookedMs = 0;

  /** True if the plan's functions give the same values in each execution. A plan is plain data. */
  private readonly isImmutable: (plan: Plan) => boolean;

  constructor(
    functions: FunctionRegistry,
    private readonly opened: (source: ReadSource) => ScanSource,
    private readonly nowMs: () => number = Date.now,
  ) {
    this.isImmutable = remembered((plan) => hasImmutableCalls(plan, functions));
  }

  /** A kept query for this request. Nobody else has it until it is kept again. */
  take(plan: Plan, { request, output }: Letter): Lead | undefined {
    const leads = this.kept.get(request.planName);
    if (leads === undefined || request.analysis !== undefined) return undefined;
    const at = leads.findIndex((lead) => isFor(lead, plan, request, output as OutputOptions));
    if (at < 0) return undefined;
    const [lead] = leads.splice(at, 1);
    this.counted(lead!, -1);
    let isReady = false;
    try {
      isReady = this.rebound(lead!, request);
    } finally {
      if (!isReady) end(lead!);
    }
    return isReady ? lead : undefined;
  }

  /** Prepares a query that has ended for being kept. If it returns false, it has to be closed. */
  rewind(lead: Lead): boolean {
    const { context, sections, options, operator, output, plan } = lead;
    flushKernelRows(context.heap.i64);
    if (lead.held === undefined || context.analysis !== undefined || !isKept(options) || !this.isImmutable(plan)) {
      return false;
    }
    if (sections?.hasRun === true || context.spill?.isUsed === true || operator.rewind?.() !== true) return false;
    if (context.memory.ownBytes > QUERY_BYTES_MAX) return false;
    output.rewind();
    context.pool.release();
    context.memory.leave();
    return true;
  }

  /** Keeps a query after `rewind`. */
  keep(lead: Lead): void {
    const name = lead.context.request.planName, leads = this.kept.get(name) ?? [];
    this.kept.delete(name);
    this.kept.set(name, leads);
    if (leads.length === VARIANTS_MAX) this.drop(leads.shift()!);
    lead.usedMs = this.nowMs();
    lead.held = undefined;
    leads.push(lead);
    this.counted(lead, 1);
    for (const oldest of this.kept.keys()) {
      if (this.count <= KEPT_MAX && this.bytes <= KEPT_BYTES_MAX) break;
      this.forget(oldest);
    }
  }

  /** The plan's statement is gone. */
  forget(planName: number): void {
    const leads = this.kept.get(planName);
    if (leads === undefined) return;
    this.kept.delete(planName);
    for (const lead of leads) this.drop(lead);
  }

  /** Called often. */
  closeUnused(): void {
    if (this.kept.size === 0) return;
    const now = this.nowMs();
    if (now - this.lookedMs < LOOK_MS) return;
    this.lookedMs = now;
    for (const [name, leads] of [...this.kept]) {
      if (leads.every(({ usedMs }) => usedMs < now - KEPT_IDLE_MS)) this.forget(name);
    }
  }

  close(): void {
    for (const name of [...this.kept.keys()]) this.forget(name);
  }

  private drop(lead: Lead): void {
    this.counted(lead, -1);
    end(lead);
  }

  private counted({ context: { memory } }: Lead, by: 1 | -1): void {
    this.count += by;
    this.bytes += by * memory.ownBytes;
  }

  /** Gives the query its new request. Returns false if its operators have to be made anew. */
  private rebound(lead: Lead, request: ReadRequest): boolean {
    const { context, operators, sections, plan } = lead, before = context.request;
    for (const part of [context, operators]) {
      part.request = request;
      part.nowMicros = request.nowMicros;
      part.cancelWord = cancelWordOf(request);
    }
    context.memory.join(slotWord(request.slot, SLOT.memoryUnits));
    context.spill?.moveTo(request.slot);
    if (sections !== undefined) sections.request = request;
    lead.held = { pieces: [], bytes: 0, rows: 0, since: 0 };
    let rowsToRead = context.rowsToRead;
    context.rowsToRead = 0;
    if (!areSameSources(before.sent, request.sent)) {
      const sources = unpackSources(request.sent).map(this.opened), changed = new Set<number>();
      if (!sources.every((source, k) => hasSameDictionaries(source, context.sources[k]!))) return false;
      for (const [id, source] of sources.entries()) {
        rowsToRead += source.rowCount - context.sources[id]!.rowCount;
        context.sources[id] = source;
        changed.add(id);
      }
      const changes = new PlanChanges(scansOf(plan), changed);
      if (lead.operator.rebind?.(changes) !== true) return false;
    }
    context.countToRead!(Math.max(0, rowsToRead));
    return true;
  }
}

function isFor(lead: Lead, plan: Plan, { user, memoryLimitBytes, spill }: ReadRequest, output: OutputOptions): boolean {
  const { request } = lead.context;
  return lead.plan === plan && request.user === user && request.memoryLimitBytes === memoryLimitBytes &&
    request.spill?.root === spill?.root && request.spill?.limitBytes === spill?.limitBytes &&
    isSameOutput(lead.options, output);
}

function hasImmutableCalls(data: unknown, functions: FunctionRegistry): boolean {
  if (typeof data !== "object" || data === null) return true;
  const { kind, function: called } = data as { kind?: unknown; function?: string };
  if (kind === "call" && functions.resolve(called!).entry.volatility !== "immutable") return false;
  return Object.values(data).every((part) => hasImmutableCalls(part, functions));
}

function end({ operator, context: { pool, memory } }: Lead): void {
  try {
    operator.close();
  } finally {
    pool.release();
    memory.release();
  }
}
