/** The file is not what the format says, or holds what is not read here. */
export class ParquetError extends Error {
  override readonly name = "ParquetError";
}
