/** Asserts the contract of operators (`Operator` in `engine/contract.ts`) once a batch. */
import { assert, VERIFY } from "../../assert.ts";
import { type Batch, MORSEL_ROWS, type Operator } from "../contract.ts";

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
    const batch = next();
    if (batch !== undefined) checkBatch(operator, batch);
    return batch;
  };
  operator.close = () => {
    assert(isOpen, "an operator is closed once");
    isOpen = false;
    close();
  };
  return operator;
}

function checkBatch({ columns }: Operator, batch: Batch): void {
  assert(batch.rowCount <= MORSEL_ROWS, "a batch has at most as many rows as a morsel");
  assert(batch.columns.length === columns.length, "a batch has the columns of its operator");
  if (!VERIFY) return;
  batch.columns.forEach(({ type }, c) =>
    assert(type === columns[c].type, `column ${c} is ${type}, not ${columns[c].type}`)
  );
}
