/** The compression levels that the codecs of Parquet files have. The other codecs have none, and ignore a level. */
const LEVELS: Record<string, [low: number, high: number]> = { GZIP: [0, 9], BROTLI: [0, 11], ZSTD: [1, 22] };

/** What `codec`, in capitals, expects instead of `level`; undefined if it takes it. */
export function expectedLevel(codec: string, level: number): string | undefined {
  const bounds = LEVELS[codec];
  if (bounds === undefined || (level >= bounds[0] && level <= bounds[1])) return undefined;
  return `${bounds[0]} to ${bounds[1]} for ${codec.toLowerCase()}`;
}
