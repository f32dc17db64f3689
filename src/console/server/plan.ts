/** The contents of EXPLAIN as data. */
export interface QueryPlan {
  root: PlanNode;
  /** With ANALYZE: execution time of the whole statement. */
  executionNanos?: number;
  memoryPeakBytes?: number;
  changedRows?: number;
}

export interface PlanNode {
  text: string;
  details: string[];
  notes: string[];
  /** True if the operator above does its work in the same pass. */
  isFused: boolean;
  measured?: {
    rows?: number;
    bytes?: number;
    /** Including and excluding its inputs. */
    nanos?: number;
    ownNanos?: number;
    memoryPeakBytes?: number;
    rowsRead?: number;
    bytesRead?: number;
  };
  inputs: PlanNode[];
}
