/**
 * Joins: the right side is kept and hashed by its keys, the left side streams past it. Without keys every right row is a candidate, so a
 * cross join and a join on an inequality are the same loop. Rows come in the order of the left rows, then of the right rows; right
 * rows without a partner come last.
 */
import type { JoinNode } from "../../sql/plan.ts";
import { NO_DICTIONARY, OutputColumns, Workspace } from "../columns.ts";
import { type Batch, MORSEL_ROWS, type Operator, type QueryContext, type Vector } from "../contract.ts";
import { KeyTable } from "../keys.ts";
import { Expressions, keepAll, type KeptRows, typesOf } from "./input.ts";

export function createJoin(plan: JoinNode, left: Operator, right: Operator, context: QueryContext): Operator {
  return new Join(plan, left, right, context);
}

class Join implements Operator {
  readonly columns;
  private readonly space: Workspace;
  private readonly table: KeyTable;
  private readonly leftKeys: Expressions;
  private readonly residual?: Expressions;
  private readonly output: OutputColumns;
  private readonly keepsLeft: boolean;
  private readonly keepsRight: boolean;
  /** Pairs of the batch in the making: numbers of rows, -1 for no partner. */
  private readonly leftRows: Int32Array;
  private readonly rightRows: Int32Array;

  private built?: KeptRows;
  /** Right rows by group: those of group g are byGroup[starts[g]] … byGroup[starts[g+1] - 1]. */
  private starts: Int32Array = new Int32Array(0);
  private byGroup: Int32Array = new Int32Array(0);
  private rightMatched?: Uint8Array;

  private leftBatch?: Batch;
  private leftGroups: Int32Array = new Int32Array(0);
  private leftRow = 0;
  /** The candidate of `leftRow` to go on with, and whether one before it passed. */
  private candidate = 0;
  private leftMatched = false;
  private leftAtEnd = false;
  private unmatchedRow = 0;

  constructor(
    private readonly plan: JoinNode,
    private readonly left: Operator,
    private readonly right: Operator,
    private readonly context: QueryContext,
  ) {
    this.columns = plan.columns;
    this.space = Workspace.of(context, plan.type === "cross" ? "cross join" : "join");
    this.table = new KeyTable(plan.rightKeys.map((key) => key.type), this.space, () => context.poll());
    this.leftKeys = new Expressions(plan.leftKeys, typesOf(left.columns), context);
    const types = [...typesOf(left.columns), ...typesOf(right.columns)];
    if (plan.residual !== undefined) this.residual = new Expressions([plan.residual], types, context);
    this.keepsLeft = plan.type === "left" || plan.type === "full";
    this.keepsRight = plan.type === "right" || plan.type === "full";
    this.output = new OutputColumns(types, this.space);
    this.leftRows = this.space.words(MORSEL_ROWS);
    this.rightRows = this.space.words(MORSEL_ROWS);
  }

  next(): Batch | undefined {
    if (this.built === undefined) {
      this.built = this.build();
      // Nothing can match: the left side need not be read at all.
      if (this.built.rowCount === 0 && !this.keepsLeft) this.leftAtEnd = true;
    }
    for (;;) {
      this.context.poll();
      if (this.leftBatch === undefined && !this.leftAtEnd) {
        this.leftBatch = this.left.next();
        this.leftRow = this.candidate = 0;
        this.leftMatched = false;
        if (this.leftBatch === undefined) this.leftAtEnd = true;
        else this.leftGroups = this.table.groups(this.leftKeys.run(this.leftBatch), this.leftBatch.rowCount, false);
      }
      const batch = this.leftBatch;
      if (batch === undefined) return this.unmatchedRight();
      const n = this.residual === undefined ? this.pairs(batch) : this.pairsThatPass(batch);
      if (n > 0) {
        this.gather(batch.columns, n, this.keepsLeft);
        if (this.leftRow >= batch.rowCount) this.leftBatch = undefined;
        return { rowCount: n, columns: this.output.vectors };
      }
      if (this.leftRow >= batch.rowCount) this.leftBatch = undefined;
    }
  }

  private build(): KeptRows {
    const { space, table, context } = this;
    const built = keepAll(this.right, this.plan.rightKeys, space, context);
    const { rowCount } = built;
    if (this.keepsRight) this.rightMatched = space.bytes(Math.max(1, rowCount)).fill(0);
    const groupOf = space.words(Math.max(1, rowCount));
    for (let from = 0; from < rowCount; from += MORSEL_ROWS) {
      const n = Math.min(MORSEL_ROWS, rowCount - from);
      const width = built.store.slice(from, n).columns;
      const keys = built.computed.map((vector) => width[built.store.vectors.indexOf(vector)]);
      groupOf.set(table.groups(keys, n, true).subarray(0, n), from);
    }
    this.starts = space.words(table.count + 1).fill(0);
    this.byGroup = space.words(Math.max(1, rowCount));
    groupRows(groupOf, rowCount, this.starts, this.byGroup);
    space.freeWords(groupOf);
    return built;
  }

  /** The next pairs, as many as fit: all candidates pass. */
  private pairs(batch: Batch): number {
    const { starts, byGroup, leftGroups, leftRows, rightRows, rightMatched } = this;
    let n = 0, row = this.leftRow, k = this.candidate;
    for (; row < batch.rowCount && n < MORSEL_ROWS; row++, k = 0) {
      const group = leftGroups[row];
      if (group < 0) {
        if (this.keepsLeft) {
          leftRows[n] = row;
          rightRows[n++] = -1;
        }
        continue;
      }
      const end = starts[group + 1];
      let at = starts[group] + k;
      for (; at < end && n < MORSEL_ROWS; at++, n++) {
        leftRows[n] = row;
        rightRows[n] = byGroup[at];
        if (rightMatched !== undefined) rightMatched[byGroup[at]] = 1;
      }
      if (at < end) {
        k = at - starts[group];
        break;
      }
    }
    this.leftRow = row;
    this.candidate = k;
    return n;
  }

  /**
   * The next pairs that also pass the residual. Behind a left row's candidates stands the pair with no partner, which stays if the join
   * keeps left rows and none of the candidates passed.
   */
  private pairsThatPass(batch: Batch): number {
    const { starts, byGroup, leftGroups, leftRows, rightRows, rightMatched, keepsLeft } = this;
    let n = 0, row = this.leftRow, k = this.candidate;
    while (row < batch.rowCount && n < MORSEL_ROWS) {
      const group = leftGroups[row];
      const first = group < 0 ? 0 : starts[group], end = group < 0 ? 0 : starts[group + 1];
      let at = first + k;
      for (; at < end && n < MORSEL_ROWS; at++, n++) {
        leftRows[n] = row;
        rightRows[n] = byGroup[at];
      }
      k = at - first;
      if (n === MORSEL_ROWS && (at < end || keepsLeft)) break;
      if (keepsLeft) {
        leftRows[n] = row;
        rightRows[n++] = -1;
      }
      row++;
      k = 0;
    }
    this.leftRow = row;
    this.candidate = k;
    if (n === 0) return 0;
    this.gather(batch.columns, n, keepsLeft);
    const passed = this.residual!.run({ rowCount: n, columns: this.output.vectors })[0].address;
    const { u8 } = this.context.heap;
    let kept = 0;
    for (let i = 0; i < n; i++) {
      const right = rightRows[i];
      if (right < 0) {
        const stays = !this.leftMatched;
        this.leftMatched = false;
        if (!stays) continue;
      } else {
        if (u8[passed + i] === 0) continue;
        this.leftMatched = keepsLeft;
        if (rightMatched !== undefined) rightMatched[right] = 1;
      }
      leftRows[kept] = leftRows[i];
      rightRows[kept++] = right;
    }
    return kept;
  }

  private gather(left: readonly Vector[], n: number, rightNulls: boolean): void {
    const { output, built } = this;
    for (let c = 0; c < left.length; c++) output.gather(c, left[c], this.leftRows, n, false);
    for (let c = 0; c < built!.columns.length; c++) {
      output.gather(left.length + c, built!.columns[c], this.rightRows, n, rightNulls);
    }
  }

  private unmatchedRight(): Batch | undefined {
    const matched = this.rightMatched, { built, rightRows, leftRows, output } = this;
    if (matched === undefined) return undefined;
    let n = 0;
    for (; this.unmatchedRow < built!.rowCount && n < MORSEL_ROWS; this.unmatchedRow++) {
      if (matched[this.unmatchedRow] === 0) rightRows[n++] = this.unmatchedRow;
    }
    if (n === 0) return undefined;
    leftRows.fill(-1, 0, n);
    const leftCount = this.left.columns.length;
    for (let c = 0; c < leftCount; c++) {
      const { type } = output.vectors[c];
      output.gather(
        c,
        { type, address: 0, dictionary: type === "SYMBOL" ? NO_DICTIONARY : undefined },
        leftRows,
        n,
        true,
      );
    }
    for (let c = 0; c < built!.columns.length; c++) {
      output.gather(leftCount + c, built!.columns[c], rightRows, n, false);
    }
    return { rowCount: n, columns: output.vectors };
  }

  close(): void {
    this.leftKeys.close();
    this.residual?.close();
    this.space.release();
    this.left.close();
    this.right.close();
  }
}

/** Orders row numbers by group, stable. `starts` (zeros, one more than groups) becomes each group's first place. */
export function groupRows(groupOf: Int32Array, rowCount: number, starts: Int32Array, out: Int32Array): void {
  for (let row = 0; row < rowCount; row++) starts[groupOf[row] + 1]++;
  for (let group = 1; group < starts.length; group++) starts[group] += starts[group - 1];
  for (let row = 0; row < rowCount; row++) out[starts[groupOf[row]]++] = row;
  // Each start has moved to its group's end, which is the next one's start.
  starts.copyWithin(1, 0, starts.length - 1);
  starts[0] = 0;
}
