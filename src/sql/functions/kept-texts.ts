/** Aggregates that keep a text in the record of a group. */
import { i32, i64, type IrNode, select, text } from "../../engine/compiler/ir.ts";
import type { FusedAggregate } from "./entry.ts";

/** Before the first row. Other than NULL, which the first row can have. */
const NONE = -(1n << 63n);

const isNone = (kept: IrNode) => i64.eq(kept, i64.const(NONE));
const isText = (value: IrNode) => i32.eqz(text.isNull(value));

const REPLACES: Record<string, NonNullable<FusedAggregate["replaces"]>> = {
  first: (kept) => isNone(kept),
  last: () => i32.const(1),
  first_not_null: (kept, value) => i32.and(text.isNull(kept), isText(value)),
  last_not_null: (_, value) => isText(value),
  min: (kept, value) =>
    i32.and(isText(value), i32.or(text.isNull(kept), i32.ltS(text.compare(value, kept), i32.const(0)))),
  max: (kept, value) =>
    i32.and(isText(value), i32.or(text.isNull(kept), i32.gtS(text.compare(value, kept), i32.const(0)))),
};

/** Undefined for other aggregates. */
export function keptText(name: string): FusedAggregate | undefined {
  const replaces = REPLACES[name];
  return replaces && {
    kind: "fused",
    ordered: true,
    state: () => [{ type: "i64", initial: NONE }, { type: "i64", initial: 0n }],
    // Records copy the text.
    update: (states) => states,
    merge: (earlier) => earlier,
    finish: ([kept]) => select(isNone(kept), text.null(), kept),
    replaces: (kept, value) => i32.and(i32.eqz(isNone(value)), replaces(kept, value)),
  };
}
