/**
 * Deterministic trades: 100 symbols with Zipf distribution, 2 sides, a random walk of each symbol's price, amounts, a million traders,
 * timestamps over 30 days. The numbers are the same on every machine, as only integer arithmetic and exact doubles are used.
 */
export interface Trades {
  rowCount: number;
  symbolNames: string[];
  symbol: Int32Array;
  /** 0 buy, 1 sell. */
  side: Uint8Array;
  price: Float64Array;
  amount: Float64Array;
  trader: Int32Array;
  /** Microseconds since 1970, ascending. */
  timestamp: BigInt64Array;
}

/** The Parquet file in the import directory, and the statement that makes a table of it. QuestDB reads its timestamps as LONG. */
export const TRADES_FILE = "trades.parquet";
export const CREATE_TRADES =
  `create table trades as (select timestamp::timestamp timestamp, symbol::symbol symbol, side::symbol side, price, amount, trader from read_parquet('${TRADES_FILE}')) timestamp(timestamp) partition by day`;

export const SYMBOL_COUNT = 100;
export const TRADER_COUNT = 1_000_000;
const START_MICROS = 1_704_067_200_000_000; // 2024-01-01
const ROW_GROUP_ROWS = 1_000_000;
const SPAN_MICROS = 30 * 86_400_000_000;

/** Uniform in [0, 2^32). Source: Marsaglia, "Xorshift RNGs", 2003. */
function xorshift(seed: number): () => number {
  let state = seed;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state >>> 0;
  };
}

export function makeTrades(rowCount: number): Trades {
  return tradesInPieces(rowCount, rowCount).next().value!;
}

/** The distance of this many rows over 30 days. */
export function gapMicrosOf(rowCount: number): number {
  return Math.floor(SPAN_MICROS / rowCount);
}

/** The same trades in pieces, for more rows than the memory holds. `gap`: microseconds between two rows. */
export function* tradesInPieces(
  rowCount: number,
  pieceRows: number,
  gap = gapMicrosOf(rowCount),
): Generator<Trades, undefined> {
  const random = xorshift(20240101);
  const symbolNames = Array.from({ length: SYMBOL_COUNT }, (_, k) => `SYM${String(k).padStart(3, "0")}-USD`);
  const weights = symbolNames.map((_, k) => 1 / (k + 1));
  const total = weights.reduce((a, b) => a + b);
  const pick = new Uint8Array(65_536); // inverse distribution, sampled
  let k = 0, edge = weights[0] / total;
  for (let i = 0; i < pick.length; i++) {
    while ((i + 0.5) / pick.length > edge && k < SYMBOL_COUNT - 1) edge += weights[++k] / total;
    pick[i] = k;
  }
  const cents = Int32Array.from({ length: SYMBOL_COUNT }, (_, i) => 1_000 + i * 997);
  for (let first = 0; first < rowCount; first += pieceRows) {
    const count = Math.min(pieceRows, rowCount - first);
    const trades: Trades = {
      rowCount: count,
      symbolNames,
      symbol: new Int32Array(count),
      side: new Uint8Array(count),
      price: new Float64Array(count),
      amount: new Float64Array(count),
      trader: new Int32Array(count),
      timestamp: new BigInt64Array(count),
    };
    for (let row = 0; row < count; row++) {
      const symbol = pick[random() & 65_535];
      cents[symbol] = Math.max(100, cents[symbol] + (random() % 21) - 10);
      trades.symbol[row] = symbol;
      trades.side[row] = random() & 1;
      trades.price[row] = cents[symbol] / 100;
      trades.amount[row] = (1 + random() % 1_000_000) / 10_000;
      trades.trader[row] = random() % TRADER_COUNT;
      trades.timestamp[row] = BigInt(START_MICROS + (first + row) * gap + random() % gap);
    }
    yield trades;
  }
}

/** One row group for each piece; texts are written as plain texts. */
export async function writeTradesParquet(
  rowCount: number,
  path: string,
  gap = gapMicrosOf(rowCount),
): Promise<void> {
  const { fileWriter, ParquetWriter } = await import("hyparquet-writer");
  const schema = [
    { name: "root", num_children: 6 },
    {
      name: "timestamp",
      type: "INT64" as const,
      converted_type: "TIMESTAMP_MICROS" as const,
      repetition_type: "REQUIRED" as const,
    },
    {
      name: "symbol",
      type: "BYTE_ARRAY" as const,
      converted_type: "UTF8" as const,
      repetition_type: "REQUIRED" as const,
    },
    {
      name: "side",
      type: "BYTE_ARRAY" as const,
      converted_type: "UTF8" as const,
      repetition_type: "REQUIRED" as const,
    },
    { name: "price", type: "DOUBLE" as const, repetition_type: "REQUIRED" as const },
    { name: "amount", type: "DOUBLE" as const, repetition_type: "REQUIRED" as const },
    { name: "trader", type: "INT64" as const, repetition_type: "REQUIRED" as const },
  ];
  const writer = new ParquetWriter({ writer: fileWriter(path), schema, codec: "SNAPPY", statistics: true });
  const SIDES = ["buy", "sell"];
  for (const trades of tradesInPieces(rowCount, ROW_GROUP_ROWS, gap)) {
    const rows = <T>(value: (row: number) => T): T[] => Array.from({ length: trades.rowCount }, (_, row) => value(row));
    writer.write({
      columnData: [
        { name: "timestamp", data: trades.timestamp },
        { name: "symbol", data: rows((row) => trades.symbolNames[trades.symbol[row]]) },
        { name: "side", data: rows((row) => SIDES[trades.side[row]]) },
        { name: "price", data: trades.price },
        { name: "amount", data: trades.amount },
        { name: "trader", data: rows((row) => BigInt(trades.trader[row])) },
      ],
      rowGroupSize: trades.rowCount,
    });
  }
  await writer.finish();
}
