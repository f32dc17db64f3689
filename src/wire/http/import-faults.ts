/** The faults of an import: the first ones for its report, and all of them as a spooled result. */
import type { Chunk, Identity, ImportFault, ResultColumn } from "../../api.ts";
import type { Results, SpooledResult } from "./results/mod.ts";

/** Further faults are only counted. */
export const FAULTS_MAX = 1_000_000;

const COLUMNS: ResultColumn[] = [
  { name: "line", type: "LONG" },
  { name: "column", type: "VARCHAR" },
  { name: "value", type: "VARCHAR" },
  { name: "reason", type: "VARCHAR" },
];

const encoder = new TextEncoder();

export class ImportFaults {
  /** The first ones. */
  readonly first: ImportFault[] = [];
  count = 0;
  private result: SpooledResult | undefined;
  private filled: Promise<void> | undefined;
  private readonly stream = new TransformStream<Chunk, Chunk>();
  private readonly writer = this.stream.writable.getWriter();

  constructor(private readonly shownMax: number, private readonly results: Results, private readonly owner: Identity) {}

  /** Resolves when further ones can be taken. */
  async add(faults: readonly ImportFault[]): Promise<void> {
    this.result ??= await this.begin();
    const lines = faults.map(({ line, column, value, reason }) =>
      JSON.stringify([String(line), column ?? null, value ?? null, reason])
    ).join(",\n");
    this.first.push(...faults.slice(0, this.shownMax - this.first.length));
    const bytes = encoder.encode(this.count === 0 ? lines : `,\n${lines}`);
    this.count += faults.length;
    // It fails once the result has reached its maximum size.
    await this.writer.write({ bytes, rows: faults.length }).catch(() => {});
  }

  /** Returns the name of the result with all faults, if there are more than the first ones. */
  async end(): Promise<string | undefined> {
    await this.writer.close().catch(() => {});
    await this.filled;
    if (this.result === undefined || this.count > this.first.length && this.result.error === undefined) {
      return this.result?.id;
    }
    await this.results.remove(this.result);
    return undefined;
  }

  /** Called instead of `end` if the import fails. */
  async drop(): Promise<void> {
    await this.writer.abort().catch(() => {});
    await this.filled;
    if (this.result !== undefined) await this.results.remove(this.result);
  }

  private async begin(): Promise<SpooledResult> {
    const result = await this.results.begin(this.owner, "-- lines of an import that did not fit");
    const chunks = this.stream.readable;
    const answer = { kind: "rows", columns: COLUMNS, timestamp: -1, chunks, totalRows: () => this.count } as const;
    this.filled = result.fill(() => Promise.resolve(answer), () => this.results.limitOf(result));
    return result;
  }
}
