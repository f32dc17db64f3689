/** Lists the files in a directory and in those below it, in the order of their paths, or those with a pattern. */
import { isAbsolute, join, sep } from "node:path";
import { SqlError, SQLSTATE } from "../../errors.ts";
import { isWithin, unlessMissing } from "../../paths.ts";
import type { FilesNode } from "../../sql/plan.ts";
import { readableSize } from "../../types/format/size.ts";
import type { Value } from "../../types/mod.ts";
import { OutputColumns, setValue, TextArena, Workspace } from "../columns.ts";
import type { Batch, Operator, QueryContext } from "../contract.ts";
import { typesOf } from "../physical/reading.ts";
import { PathPattern } from "./path-pattern.ts";

export function createFiles(plan: FilesNode, context: QueryContext): Operator {
  return new Files(plan, context);
}

const OPERATOR = "files";
const BATCH_ROWS = 4_096;
/** Memory of an entry of a directory besides its name. */
const ENTRY_BYTES = 100;

class Files implements Operator {
  readonly columns;
  private readonly space: Workspace;
  private readonly output: OutputColumns;
  private readonly arena: TextArena;
  private readonly rows: Generator<Value[], undefined>;

  constructor(private readonly plan: FilesNode, private readonly context: QueryContext) {
    this.columns = plan.columns;
    this.space = Workspace.of(context, OPERATOR);
    this.output = new OutputColumns(typesOf(plan.columns), this.space, BATCH_ROWS);
    this.arena = new TextArena(this.space);
    this.rows = this.listed();
  }

  next(): Batch | undefined {
    const { vectors } = this.output, { heap } = this.context;
    this.arena.release();
    let rowCount = 0;
    for (; rowCount < BATCH_ROWS; rowCount++) {
      const { value: row, done } = this.rows.next();
      if (done) break;
      for (let c = 0; c < vectors.length; c++) {
        setValue(heap, vectors[c].type, vectors[c].address, rowCount, row[c], this.arena);
      }
    }
    return rowCount === 0 ? undefined : { rowCount, columns: vectors };
  }

  private *listed(): Generator<Value[], undefined> {
    const directory = this.directory();
    if (directory === undefined) return;
    const { pattern } = this.plan;
    const inRoot = pattern === undefined ? undefined : new PathPattern(this.withinRoot(pattern, directory));
    yield* this.listedIn(directory, "", inRoot, inRoot?.start());
  }

  /** `folder`: relative to the directory. It ends with a separator, or is empty. `states`: those of the pattern in it. */
  private *listedIn(
    directory: string,
    folder: string,
    pattern?: PathPattern,
    states: number[] = [],
  ): Generator<Value[], undefined> {
    const { context } = this, { memory } = context;
    context.poll();
    const names = this.namesIn(directory, folder);
    const sizeBytes = names.reduce((sum, { length }) => sum + ENTRY_BYTES + 2 * length, 0);
    memory.account(sizeBytes, OPERATOR);
    try {
      for (const name of names) {
        const path = folder + name;
        if (name.endsWith(sep)) {
          const inside = pattern?.within(states, name.slice(0, -sep.length)) ?? [];
          if (pattern === undefined || inside.length > 0) yield* this.listedIn(directory, path, pattern, inside);
          continue;
        }
        if (pattern !== undefined && !pattern.matchesFile(states, name)) continue;
        context.poll();
        // It may have been removed since the directory was read.
        const info = unlessMissing(() => Deno.statSync(join(directory, path)));
        if (info === undefined) continue;
        const { size, mtime } = info;
        yield [path, BigInt(size), readableSize(size), mtime === null ? null : BigInt(mtime.getTime())];
      }
    } finally {
      memory.account(-sizeBytes, OPERATOR);
    }
  }

  /** The pattern relative to the root, which is `directory` without links. */
  private withinRoot(pattern: string, directory: string): string {
    if (!isAbsolute(pattern)) return pattern;
    for (const root of [this.plan.roots[0], directory]) {
      if (pattern.startsWith(root.endsWith(sep) ? root : root + sep)) return pattern.slice(root.length);
    }
    throw new SqlError(`${pattern} is not in the import directory`, this.plan.at, SQLSTATE.insufficientPrivilege);
  }

  /** Names of files and directories. Those of directories end with the separator, which gives the order of paths. */
  private namesIn(directory: string, folder: string): string[] {
    const names: string[] = [];
    try {
      for (
        const { name, isFile, isDirectory } of unlessMissing(() => Deno.readDirSync(join(directory, folder))) ?? []
      ) {
        if (isDirectory) names.push(name + sep);
        else if (isFile && !name.startsWith(this.plan.hiddenPrefix)) names.push(name);
      }
    } catch (error) {
      if (!(error instanceof Deno.errors.PermissionDenied)) throw error;
      const message = `${folder || "the directory"} cannot be listed: permission denied`;
      throw new SqlError(message, this.plan.at, SQLSTATE.insufficientPrivilege, { cause: error });
    }
    return names.sort();
  }

  /** The directory without links. Undefined if it is a root that does not exist yet. */
  private directory(): string | undefined {
    const { path, roots, at } = this.plan;
    if (path === undefined) return unlessMissing(() => Deno.realPathSync(roots[0]));
    try {
      const real = Deno.realPathSync(isAbsolute(path) ? path : join(roots[0], path));
      // Links must not lead out of the roots.
      const isInside = roots.some((root) => {
        const realRoot = unlessMissing(() => Deno.realPathSync(root));
        return realRoot !== undefined && isWithin(realRoot, real);
      });
      if (isInside && Deno.statSync(real).isDirectory) return real;
    } catch (error) {
      const { NotFound, NotADirectory, PermissionDenied } = Deno.errors;
      if (![NotFound, NotADirectory, PermissionDenied].some((kind) => error instanceof kind)) throw error;
    }
    // One message for all, because it must not tell which other directories exist.
    const message = `${path} is not a directory in the import or export directory`;
    throw new SqlError(message, at, SQLSTATE.insufficientPrivilege);
  }

  close(): void {
    this.rows.return(undefined);
    this.space.release();
  }
}
