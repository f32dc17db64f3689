/**
 * Makes import/trades.parquet, the demo data: about 100,000 trades of a dozen pairs over four weeks. The output is deterministic.
 *
 *     deno run -A scripts/make-trades.ts [FILE]
 */
import { parquetWriteBuffer } from "hyparquet-writer";

const ROW_COUNT = 100_000;
const START_MICROS = BigInt(Date.UTC(2026, 1, 2)) * 1000n; // a Monday
const DAYS = 28;

/** Share of the trades, initial price, and daily volatility as a fraction of the price. */
const PAIRS = [
  { symbol: "BTC-USD", share: 25, price: 97_350, daily: 0.021, decimals: 2, size: 0.05 },
  { symbol: "ETH-USD", share: 20, price: 3_412, daily: 0.028, decimals: 2, size: 0.8 },
  { symbol: "SOL-USD", share: 14, price: 201.4, daily: 0.041, decimals: 2, size: 12 },
  { symbol: "XRP-USD", share: 9, price: 2.41, daily: 0.038, decimals: 4, size: 900 },
  { symbol: "BTC-EUR", share: 8, price: 93_810, daily: 0.021, decimals: 2, size: 0.04 },
  { symbol: "ETH-BTC", share: 6, price: 0.03505, daily: 0.014, decimals: 5, size: 1.1 },
  { symbol: "DOGE-USD", share: 5, price: 0.2541, daily: 0.052, decimals: 5, size: 6_000 },
  { symbol: "ADA-USD", share: 4, price: 0.7312, daily: 0.044, decimals: 4, size: 2_500 },
  { symbol: "LTC-USD", share: 3, price: 118.2, daily: 0.033, decimals: 2, size: 9 },
  { symbol: "AVAX-USD", share: 3, price: 27.6, daily: 0.045, decimals: 2, size: 60 },
  { symbol: "LINK-USD", share: 2, price: 19.85, daily: 0.043, decimals: 3, size: 80 },
  { symbol: "DOT-USD", share: 1, price: 5.12, daily: 0.046, decimals: 3, size: 300 },
];

/** xorshift128+ in 32-bit halves would be longer; Mulberry32's period of 2^32 suffices for half a million draws. */
function randomFrom(seed: number): () => number {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function makeTrades() {
  const random = randomFrom(20_260_202);
  /** The sum of twelve uniforms is nearly normal, and the same on every machine, unlike log and cos. */
  const normal = () => {
    let sum = -6;
    for (let draw = 0; draw < 12; draw++) sum += random();
    return sum;
  };
  // More trades during European and American daytime, fewer at weekends.
  const hourWeight = (hour: number) => {
    const ofDay = hour % 24;
    const weekend = Math.floor(hour / 24) % 7 >= 5 ? 0.55 : 1;
    return weekend * (ofDay < 6 ? 0.6 : ofDay < 13 ? 1 : ofDay < 20 ? 1.6 : 0.9);
  };
  const hours = Array.from({ length: DAYS * 24 }, (_, hour) => hourWeight(hour));
  const weightSum = hours.reduce((sum, weight) => sum + weight, 0);
  const times: bigint[] = [];
  let owed = 0;
  for (const [hour, weight] of hours.entries()) {
    owed += (weight / weightSum) * ROW_COUNT;
    const count = Math.floor(owed + 1e-6);
    owed -= count;
    const inHour = Array.from({ length: count }, () => Math.floor(random() * 3_600_000_000)).sort((a, b) => a - b);
    for (const micros of inHour) times.push(START_MICROS + BigInt(hour) * 3_600_000_000n + BigInt(micros));
  }
  const shareSum = PAIRS.reduce((sum, pair) => sum + pair.share, 0);
  const prices = PAIRS.map((pair) => pair.price);
  const lastMicros = PAIRS.map(() => START_MICROS);
  const rows = {
    symbol: [] as string[],
    side: [] as string[],
    price: [] as number[],
    amount: [] as number[],
    timestamp: times,
  };
  for (const time of times) {
    let draw = random() * shareSum;
    let index = 0;
    while (draw >= PAIRS[index].share) draw -= PAIRS[index++].share;
    const pair = PAIRS[index];
    const days = Number(time - lastMicros[index]) / 86_400e6;
    lastMicros[index] = time;
    prices[index] *= 1 + pair.daily * Math.sqrt(days) * normal();
    const buy = random() < 0.5;
    const spread = prices[index] * 0.0001 * (buy ? 1 : -1);
    const lots = random() * random() * random() * 8;
    rows.symbol.push(pair.symbol);
    rows.side.push(buy ? "buy" : "sell");
    rows.price.push(Number((prices[index] + spread).toFixed(pair.decimals)));
    rows.amount.push(Number(Math.max(pair.size * lots, pair.size / 1000).toPrecision(5)));
  }
  return rows;
}

function tradesParquet(): Uint8Array {
  const rows = makeTrades();
  return new Uint8Array(parquetWriteBuffer({
    columnData: [
      { name: "symbol", data: rows.symbol },
      { name: "side", data: rows.side },
      { name: "price", data: rows.price },
      { name: "amount", data: rows.amount },
      { name: "timestamp", data: rows.timestamp },
    ],
    rowGroupSize: 25_000,
    schema: [
      { name: "root", num_children: 5 },
      {
        name: "symbol",
        type: "BYTE_ARRAY",
        converted_type: "UTF8",
        logical_type: { type: "STRING" },
        repetition_type: "REQUIRED",
      },
      {
        name: "side",
        type: "BYTE_ARRAY",
        converted_type: "UTF8",
        logical_type: { type: "STRING" },
        repetition_type: "REQUIRED",
      },
      { name: "price", type: "DOUBLE", repetition_type: "REQUIRED" },
      { name: "amount", type: "DOUBLE", repetition_type: "REQUIRED" },
      {
        name: "timestamp",
        type: "INT64",
        converted_type: "TIMESTAMP_MICROS",
        logical_type: { type: "TIMESTAMP", isAdjustedToUTC: true, unit: "MICROS" },
        repetition_type: "REQUIRED",
      },
    ],
    // deno-lint-ignore no-explicit-any
  } as any));
}

if (import.meta.main) {
  Deno.writeFileSync(Deno.args[0] ?? new URL("../import/trades.parquet", import.meta.url), tradesParquet());
}
