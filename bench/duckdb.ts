/** DuckDB in this process, with one thread for each core. Values are converted to the form of Sundial's /exec. */
import { type DuckDBConnection, DuckDBInstance, DuckDBTimestampValue } from "@duckdb/node-api";
import { cpus } from "node:os";

export class Duck {
  private constructor(private readonly instance: DuckDBInstance, private readonly connection: DuckDBConnection) {}

  static async open(path: string): Promise<Duck> {
    const instance = await DuckDBInstance.create(path, { threads: String(cpus().length) });
    return new Duck(instance, await instance.connect());
  }

  async run(sql: string): Promise<void> {
    await this.connection.run(sql);
  }

  /** Reads the whole answer, which the function that it returns converts. */
  async ask(sql: string): Promise<() => unknown[][]> {
    const reader = await this.connection.runAndReadAll(sql);
    return () => reader.getRows().map((row) => row.map(plain));
  }

  async rows(sql: string): Promise<unknown[][]> {
    return (await this.ask(sql))();
  }

  [Symbol.dispose](): void {
    this.connection.closeSync();
    this.instance.closeSync();
  }
}

function plain(value: unknown): unknown {
  if (value instanceof DuckDBTimestampValue) {
    const micros = value.micros;
    const millis = new Date(Number(micros / 1000n)).toISOString();
    return `${millis.slice(0, -1)}${String(micros % 1000n).padStart(3, "0")}Z`;
  }
  return typeof value === "bigint" ? Number(value) : value;
}
