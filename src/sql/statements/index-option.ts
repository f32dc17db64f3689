/** Options of the index of a SYMBOL column. There is one kind of index, so `TYPE` and `INCLUDE` have no effect. */
import { SqlError, SQLSTATE } from "../../errors.ts";
import { sameName } from "../../types/names.ts";
import type { Name } from "../ast.ts";
import { unknownColumn } from "../binder/context.ts";
import { at, given, name, optional, wholeNumber, word } from "../tree-nodes.ts";
import type { Form } from "./statement.ts";

export interface IndexOption {
  capacity?: number;
  capacityAt?: number;
  /** INCLUDE of a posting index. */
  include?: Name[];
}

export const indexParts: Pick<Form, "grammar" | "actions"> = {
  grammar: String.raw`
  indexOption = indexCapacity                            -- capacity
              | "TYPE" "<name>" "<name>"? indexCapacity? indexInclude?  -- type
  indexCapacity = "CAPACITY" "<number>"
  indexInclude = "INCLUDE" "(" name ("," name)* ")"`,
  actions: {
    indexOption_capacity(capacity): IndexOption {
      return capacity.tree();
    },
    indexOption_type(_type, kind, variant, capacity, include): IndexOption {
      const isPosting = word(kind) === "posting";
      if (!isPosting && word(kind) !== "bitmap") {
        throw new SqlError(
          `there is no index of the kind ${word(kind)}: expected BITMAP or POSTING`,
          at(kind),
          SQLSTATE.syntax,
        );
      }
      if (given(variant) && !(isPosting && ["delta", "ef"].includes(word(variant.child(0))))) {
        const wanted = isPosting ? "DELTA, EF or INCLUDE" : "CAPACITY";
        throw new SqlError(`unknown option of an index: expected ${wanted}`, at(variant.child(0)), SQLSTATE.syntax);
      }
      if (given(capacity) && isPosting) {
        throw new SqlError("only an index of the kind BITMAP has a capacity", at(capacity.child(0)), SQLSTATE.syntax);
      }
      if (given(include) && !isPosting) {
        const message = "only an index of the kind POSTING includes columns";
        throw new SqlError(message, at(include.child(0)), SQLSTATE.syntax);
      }
      return { ...optional<IndexOption>(capacity), include: optional<Name[]>(include) };
    },
    indexCapacity(_capacity, number): IndexOption {
      return { capacity: wholeNumber(number), capacityAt: at(number) };
    },
    indexInclude(_include, _open, first, _commas, rest, _close): Name[] {
      return [first, ...rest.children].map(name);
    },
  },
};

/** Returns the capacity, rounded up to a power of two. */
export function indexCapacityOf({ capacity, capacityAt }: IndexOption): number | undefined {
  if (capacity === undefined) return undefined;
  checkCapacity(capacity, capacityAt!);
  return capacityOf(capacity);
}

/** @throws {SqlError} at the first column of INCLUDE that is not one of `columns`. */
export function checkIncluded({ include = [] }: IndexOption, columns: readonly { name: string; type: string }[]): void {
  for (const { text, at } of include) {
    if (!columns.some((column) => sameName(column.name, text))) throw unknownColumn(text, at, columns);
  }
}

const CAPACITY_MAX = 8388608;
const SYMBOL_CAPACITY_DEFAULT = 256;

function checkCapacity(capacity: number, at: number): void {
  if (capacity >= 2 && capacity <= CAPACITY_MAX) return;
  const message = `the capacity of an index must be between 2 and ${CAPACITY_MAX}`;
  throw new SqlError(message, at, SQLSTATE.invalidParameter);
}

/** Rounds up to a power of two. */
export function capacityOf(wanted: number | undefined): number {
  if (wanted === undefined) return SYMBOL_CAPACITY_DEFAULT;
  let capacity = 2;
  while (capacity < wanted) capacity *= 2;
  return capacity;
}
