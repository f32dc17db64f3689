/** What EXPLAIN tells, as data. */
export interface QueryPlan {
  root: PlanNode;
  /** With ANALYZE, of the whole statement. */
  executionNanos?: number;
  memoryPeakBytes?: number;
  changedRows?: number;
}

export interface PlanNode {
  text: string;
  details: string[];
  notes: string[];
  /** The operator above does its work in the same pass. */
  isFused: boolean;
  measured?: {
    rows?: number;
    bytes?: number;
    /** With its inputs, and without. */
    nanos?: number;
    ownNanos?: number;
    memoryPeakBytes?: number;
    rowsRead?: number;
    bytesRead?: number;
  };
  inputs: PlanNode[];
}
