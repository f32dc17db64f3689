/** Asserts the contract of operators (`Operator` in `engine/contract.ts`) once a batch. */
import { assert } from "../../errors.ts";
import type { Operator } from "../contract.ts";

/**
 * Returns the operator, which from now on asserts that it is closed once and not used afterwards. Its freed buffers may belong to another
 * query, whose rows it would read or overwrite.
 */
export function assertingContract<T extends Operator>(operator: T): T {
  const next = operator.next.bind(operator);
  const close = operator.close.bind(operator);
  let isOpen = true;
  operator.next = () => {
    assert(isOpen, "a closed operator is not asked for rows");
    return next();
  };
  operator.close = () => {
    assert(isOpen, "an operator is closed once");
    isOpen = false;
    close();
  };
  return operator;
}
