/** Replies with a Parquet file: of a query, or of a result that was spooled. */
import type { Answer, Chunk, ExecuteOptions } from "../../api.ts";
import { ms, oneOf } from "../../config/mod.ts";
import { notSupported, SqlError } from "../../errors.ts";
import type { QueryCount } from "../../metrics/mod.ts";
import { expectedLevel } from "../../types/parquet-levels.ts";
import { VERSION } from "../../version.ts";
import { ParquetAssembler, type ParquetEncoding } from "../encode/parquet.ts";
import type { Reply } from "../http1/mod.ts";
import type { Call } from "./contract.ts";
import { failed, rowsOptions, statementTimeoutMs } from "./query.ts";
import { rowsReply } from "./reply.ts";

const CODECS = [
  "UNCOMPRESSED",
  "SNAPPY",
  "GZIP",
  "BROTLI",
  "ZSTD",
  "LZ4_RAW",
] as const satisfies ParquetEncoding["codec"][];

export const parquetSettings = {
  timeoutMs: ms(
    "http.export.timeout",
    "300s",
    "Time limit of a Parquet export, in place of query.timeout; 0: query.timeout applies.",
  ),
  codec: oneOf(
    "cairo.parquet.export.compression.codec",
    CODECS,
    "ZSTD",
    "Compression of exported Parquet files, unless the request has a compression_codec.",
    { reloadable: true },
  ),
};

interface FileSource {
  /** The text, for the log of failures. */
  query: string;
  execute(options: ExecuteOptions): Answer | Promise<Answer>;
  headers: [name: string, value: string][];
}

/** A file is always complete. */
export async function parquetReply(
  call: Call,
  count: QueryCount,
  { query, execute, headers }: FileSource,
): Promise<Reply> {
  const answer = await execute({
    encoding: parquetEncoding(call),
    signal: call.request.signal,
    timeoutMs: statementTimeoutMs(call) || call.options.config.get(parquetSettings.timeoutMs),
  });
  if (answer.kind === "done") throw new SqlError("only rows can be exported: expected a query", 0);
  const file = new ParquetAssembler(answer.columns, `Sundial ${VERSION}`);
  return await rowsReply({
    ...rowsOptions(call, count),
    contentType: "application/vnd.apache.parquet",
    headers: [attachment(call, "parquet"), ...headers],
    head: file.head,
    chunks: groupsOf(answer.chunks, file),
    tail: () => file.footer(),
    errorTail(error) {
      failed(call, count, error, query);
      return undefined;
    },
  });
}

async function* groupsOf(chunks: AsyncIterable<Chunk>, file: ParquetAssembler): AsyncIterable<Chunk> {
  for await (const { bytes, rows } of chunks) yield { bytes: file.group(bytes), rows };
}

/** The parameters of a Parquet file. A group has the rows of one batch, so `row_group_size` is only validated. */
function parquetEncoding({ parameters, options }: Call): ParquetEncoding {
  if (parameters.get("partition_by")) throw notSupported("partition_by", 0);
  const codec = (parameters.get("compression_codec") || options.config.get(parquetSettings.codec)).toUpperCase();
  if (!CODECS.some((known) => known === codec)) {
    throw new SqlError(
      `unknown compression_codec '${codec.toLowerCase()}': known are ${CODECS.join(", ").toLowerCase()}`,
      0,
    );
  }
  const version = parameters.get("parquet_version");
  if (version !== undefined && version !== "1" && version !== "2") throw new SqlError("parquet_version is 1 or 2", 0);
  for (const name of ["row_group_size", "data_page_size", "compression_level"]) {
    if (!/^\d{0,9}$/.test(parameters.get(name) ?? "")) throw new SqlError(`${name} is not a number`, 0);
  }
  const level = parameters.get("compression_level"), pageSize = parameters.get("data_page_size");
  const expected = level ? expectedLevel(codec, Number(level)) : undefined;
  if (expected !== undefined) throw new SqlError(`compression_level is ${level}: expected ${expected}`, 0);
  return {
    name: "parquet",
    codec: codec as ParquetEncoding["codec"],
    level: level ? Number(level) : undefined,
    pageSizeBytes: pageSize ? Math.max(1024, Number(pageSize)) : undefined,
  };
}

export function attachment(call: Call, extension: string): [string, string] {
  const wanted = call.parameters.get("filename");
  const plain = `attachment; filename="${fileName(wanted)}.${extension}"`;
  return ["Content-Disposition", `${plain}${unicodeName(wanted, extension)}`];
}

/** The name in full, if it has letters that a quoted name in a header cannot have (RFC 6266). */
function unicodeName(text = "", extension: string): string {
  const clean = text.toWellFormed().replaceAll(/[\p{Cc}\p{Cf}"\\]/gu, "");
  if (/^[\x20-\x7e]*$/.test(clean)) return "";
  const encoded = encodeURIComponent(`${clean}.${extension}`).replaceAll(
    /['()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `; filename*=UTF-8''${encoded}`;
}

/** The name is part of a header: ASCII only, without quotes and control characters. */
function fileName(text: string | undefined): string {
  const clean = (text ?? "").replaceAll(/[^\x20-\x7e]|["\\]/g, "");
  return clean === "" ? `sundial-query-${Date.now()}` : clean;
}
