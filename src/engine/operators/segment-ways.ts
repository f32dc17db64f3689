/** Adds rows of segments to groups by the packed codes of their chunks, by the first way that can. */
import type { ScanNode } from "../../sql/plan.ts";
import type { QueryContext } from "../contract.ts";
import type { GroupSpec } from "../physical/plan.ts";
import { OFFSET_ROWS_MIN } from "../physical/thresholds.ts";
import type { Taker } from "./base.ts";
import type { Grouper, GroupTable } from "./group-table.ts";
import { MaskedRows } from "./masked-rows.ts";
import type { Morsel } from "./morsel.ts";
import { OffsetGroups } from "./offset-groups.ts";
import { OffsetSums } from "./offset-sums.ts";

interface SegmentWay {
  /** False if the rows have to be grouped by their values. */
  consume(table: GroupTable, morsel: Morsel): boolean;
  /** As of readers of morsels. */
  restart?(): void;
  close(): void;
}

export class SegmentWays {
  /** Made for the first morsel that has enough rows. */
  private list?: SegmentWay[];

  /** `grouper`: has its kernels. Undefined if there is no such way. */
  static of(spec: GroupSpec, grouper: Grouper, node: ScanNode, context: QueryContext): SegmentWays | undefined {
    return spec.segments === undefined ? undefined : new SegmentWays(spec, grouper, node, context);
  }

  private constructor(
    private readonly spec: GroupSpec,
    private readonly grouper: Grouper,
    private readonly node: ScanNode,
    private readonly context: QueryContext,
  ) {}

  /** It has ways, which cannot read other rows. */
  get isUsed(): boolean {
    return this.list !== undefined;
  }

  /** `table`: the one that is being filled. */
  takerFor(table: () => GroupTable): Taker {
    return { isFirst: this.spec.segments === "masks", takes: (morsel) => this.takes(table(), morsel) };
  }

  private takes(table: GroupTable, morsel: Morsel): boolean {
    const { from, to } = morsel.around ?? { from: morsel.start, to: morsel.end };
    if (to - from < OFFSET_ROWS_MIN) return false;
    this.list ??= this.open();
    return this.list.some((way) => way.consume(table, morsel));
  }

  private open(): SegmentWay[] {
    const { spec, grouper, node, context } = this, shape = grouper.fusedShape;
    const packed = shape?.kind === "single"
      ? OffsetSums.of(spec, shape.aggregates, node, context)
      : OffsetGroups.of(spec, grouper, node, context);
    return [packed, MaskedRows.of(spec, grouper, node, context)].filter((way) => way !== undefined);
  }

  restart(): void {
    this.list?.forEach((way) => way.restart?.());
  }

  close(): void {
    this.list?.forEach((way) => way.close());
  }
}
