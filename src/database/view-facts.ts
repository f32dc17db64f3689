/**
 * What the lists of tables, columns and views say of views: their queries have to be compiled for it, each once after a change of any
 * definition. Many views are compiled in slices, because main is shared by all clients.
 */
import { SqlError, TableClosedError } from "../errors.ts";
import type { ResultColumn } from "../api.ts";
import type { Requirement } from "../requirement.ts";
import { quotedName } from "../sql/mod.ts";
import type { Statement, StatementCache } from "./statements.ts";
import type { StoredView } from "./views.ts";

/** Not all views are known yet. The statement is executed again after `ViewFacts.complete`. */
export class ViewsUnknownError extends Error {}

/** What is known of a view. */
export type ViewFact =
  | { kind: "compiled"; columns: readonly ResultColumn[]; timestamp: number; requires: Requirement[] }
  | { kind: "faulty"; fault: string }
  /** Another thread compiles it, or its table is closed and may be opened at any time. */
  | { kind: "unknown"; untilMs: number };

const SLICE_MS = 5;
/** After this time, a view of a closed table is compiled again. */
const CLOSED_MS = 1_000;

export interface ViewFactsOptions {
  all(): StoredView[];
  /** Compiles a query of the server itself. */
  compile: (text: string) => ReturnType<StatementCache["get"]>;
  /** Of all definitions. */
  version(): number;
}

export class ViewFacts {
  private known = new WeakMap<StoredView, ViewFact>();
  private version = -1;

  constructor(private readonly options: ViewFactsOptions) {}

  /** All views. @throws {ViewsUnknownError} if compiling them takes long. */
  all(): { view: StoredView; fact: ViewFact }[] {
    const until = performance.now() + SLICE_MS;
    return this.options.all().map((view) => {
      let fact = this.factOf(view);
      if (fact !== undefined) return { view, fact };
      if (performance.now() > until) throw new ViewsUnknownError();
      fact = this.compiled(view);
      return { view, fact };
    });
  }

  /** Compiles all views, in slices. */
  async complete(): Promise<void> {
    let until = performance.now() + SLICE_MS;
    for (const view of this.options.all()) {
      if (this.factOf(view) !== undefined) continue;
      if (performance.now() > until) {
        await new Promise((resolve) => setTimeout(resolve, 0));
        until = performance.now() + SLICE_MS;
      }
      this.compiled(view);
    }
  }

  private factOf(view: StoredView): ViewFact | undefined {
    const version = this.options.version();
    if (version !== this.version) this.known = new WeakMap();
    this.version = version;
    const fact = this.known.get(view);
    return fact?.kind === "unknown" && fact.untilMs < performance.now() ? undefined : fact;
  }

  private compiled(view: StoredView): ViewFact {
    const fact = this.compile(view);
    this.known.set(view, fact);
    return fact;
  }

  private compile(view: StoredView): ViewFact {
    const { known } = this;
    try {
      const compiled = this.options.compile(`select * from ${quotedName(view.name)}`);
      if (!(compiled instanceof Promise)) return compiledFact(compiled);
      compiled.then((statement) => known.set(view, compiledFact(statement)), () => {});
      return { kind: "unknown", untilMs: Infinity };
    } catch (error) {
      if (error instanceof TableClosedError) return { kind: "unknown", untilMs: performance.now() + CLOSED_MS };
      if (!(error instanceof SqlError)) throw error;
      return { kind: "faulty", fault: error.message };
    }
  }
}

function compiledFact({ rows, requires }: Statement): ViewFact {
  return { kind: "compiled", columns: rows?.columns ?? [], timestamp: rows?.timestamp ?? -1, requires };
}
