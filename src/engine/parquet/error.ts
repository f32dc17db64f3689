/** The file is invalid, or uses a feature that is not supported. */
export class ParquetError extends Error {
  override readonly name = "ParquetError";
}
