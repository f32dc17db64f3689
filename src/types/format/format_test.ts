import assert from "node:assert/strict";
import { randomFrom } from "../../engine/testing.ts";
import { formatDouble, formatFloat, formatInt, formatLong } from "./numbers.ts";
import { formatValue } from "./value.ts";
import { SEED } from "../../testing.ts";

const bytes = new Uint8Array(64);
const text = (end: number) => String.fromCharCode(...bytes.subarray(0, end));

const doubles: [number, string][] = [
  [0, "0.0"],
  [-0, "-0.0"],
  [1, "1.0"],
  [100, "100.0"],
  [1.5, "1.5"],
  [-2.25, "-2.25"],
  [0.1, "0.1"],
  [0.001, "0.001"],
  [0.00099, "9.9E-4"],
  [1e7, "1.0E7"],
  [9999999, "9999999.0"],
  [9999999.5, "9999999.5"],
  [123456789.125, "1.23456789125E8"],
  [1e20, "1.0E20"],
  [1e-7, "1.0E-7"],
  [1e10, "1.0E10"],
  [0.1 + 0.2, "0.30000000000000004"],
  [1 / 3, "0.3333333333333333"],
  [1.7976931348623157e308, "1.7976931348623157E308"],
  [5e-324, "5.0E-324"],
  [1e21, "1.0E21"],
  [9007199254740993, "9.007199254740992E15"],
  [2e-3, "0.002"],
  [39269.98, "39269.98"],
  [0.012345, "0.012345"],
];
Deno.test("formatDouble() writes numbers as Java does", () => {
  for (const [value, expected] of doubles) {
    assert.equal(text(formatDouble(value, bytes, 0)), expected);
  }
});

Deno.test("formatDouble() gives a text that reads back", () => {
  for (let i = 0; i < 20000; i++) {
    const value = (random() / 2 ** 32 - 0.5) * 10 ** Math.floor(random() / 2 ** 32 * 40 - 20);
    assert.equal(Number(text(formatDouble(value, bytes, 0))), value);
    const rounded = Math.round(value * 1e4) / 1e4;
    assert.equal(Number(text(formatDouble(rounded, bytes, 0))), rounded);
  }
});

/** Of a finite value, by the digits of `toExponential`, which are the shortest. */
function plainDouble(value: number): string {
  if (value === 0) return Object.is(value, -0) ? "-0.0" : "0.0";
  const [, sign, first, others = "", power] = /^(-?)(\d)(?:\.(\d+))?e([+-]\d+)$/.exec(value.toExponential())!;
  const exponent = Number(power), digits = first + others;
  if (exponent < -3 || exponent >= 7) return `${sign}${first}.${others || "0"}E${exponent}`;
  if (exponent < 0) return `${sign}0.${"0".repeat(-exponent - 1)}${digits}`;
  return `${sign}${digits.slice(0, exponent + 1).padEnd(exponent + 1, "0")}.${digits.slice(exponent + 1) || "0"}`;
}

const random = randomFrom(SEED);

Deno.test(`formatDouble() writes the shortest digits, SEED=${SEED}`, () => {
  const values = new Float64Array(1), words = new Uint32Array(values.buffer);
  const check = (value: number) => {
    assert.equal(text(formatDouble(value, bytes, 0)), plainDouble(value));
  };
  for (const edge of [1e-3, 1e7, 1e-6, 1e6, 999_999.999999, 9_999_999.999999, 0.001001, 0.1, 1, 10]) {
    values[0] = edge;
    for (const by of [-1, 0, 1]) {
      words[0] += by;
      for (const sign of [1, -1]) check(sign * values[0]!);
      values[0] = edge;
    }
  }
  for (let k = 0; k < 50_000; k++) {
    // Of few decimals, their neighbours, and any.
    const decimals = random() % 10, value = (random() % 10 ** (1 + random() % 9)) / 10 ** decimals;
    values[0] = value;
    words[0] = words[0]! + random() % 3 - 1;
    check(values[0]!);
    check(-values[0]!);
    words[0] = random();
    words[1] = random();
    if (Number.isFinite(values[0]!)) check(values[0]!);
  }
});

Deno.test("formatFloat() writes the shortest digits that identify the float", () => {
  const cases: [number, string][] = [
    [1.1, "1.1"],
    [0.1, "0.1"],
    [16777216, "1.6777216E7"],
    [123456.79, "123456.79"],
    [
      1e-5,
      "1.0E-5",
    ],
    [3.4028235e38, "3.4028235E38"],
    [2 ** -12, "2.4414062E-4"],
    [2 ** -25, "2.9802322E-8"],
    [2 ** 90, "1.23794004E27"],
    [2 ** -149, "1.4E-45"],
    [2 ** -148, "2.8E-45"],
    [2 ** -146, "1.1E-44"],
    [2097152.25, "2097152.2"],
    [2097152.75, "2097152.8"],
  ];
  for (const [value, expected] of cases) assert.equal(text(formatFloat(Math.fround(value), bytes, 0)), expected);
  for (let i = 0; i < 5000; i++) {
    const value = Math.fround((random() / 2 ** 32 - 0.5) * 10 ** Math.floor(random() / 2 ** 32 * 40 - 20));
    assert.equal(Math.fround(Number(text(formatFloat(value, bytes, 0)))), value);
  }
});

Deno.test("formatInt() and formatLong() equal String()", () => {
  for (const value of [0, 9, 10, 99, 100, 12345, -1, -2147483648, 2147483647, 1000000000]) {
    assert.equal(text(formatInt(value, bytes, 0)), String(value));
  }
  const longs = [
    0n,
    -1n,
    2n ** 63n - 1n,
    -(2n ** 63n),
    2n ** 53n,
    10n ** 18n,
    -(10n ** 18n),
    999999999999999999n,
    4294967296n,
    -4294967296n,
  ];
  for (let i = 0; i < 5000; i++) {
    longs.push(
      BigInt.asIntN(
        64,
        BigInt(Math.floor(random() / 2 ** 32 * 2 ** 53)) * BigInt(Math.floor(random() / 2 ** 32 * 2 ** 40)),
      ),
    );
  }
  for (const value of longs) {
    const low = Number(BigInt.asIntN(32, value)), high = Number(value >> 32n);
    assert.equal(text(formatLong(low, high, bytes, 0)), String(value));
  }
});

Deno.test("times are written with 3, 6 and 9 digits", () => {
  assert.equal(formatValue(0n, "TIMESTAMP"), "1970-01-01T00:00:00.000000Z");
  assert.equal(formatValue(-1n, "TIMESTAMP"), "1969-12-31T23:59:59.999999Z");
  assert.equal(formatValue(-14182940000000n, "TIMESTAMP"), "1969-07-20T20:17:40.000000Z");
  assert.equal(formatValue(1709208000999n, "DATE"), "2024-02-29T12:00:00.999Z");
  assert.equal(formatValue(1709208000000001002n, "TIMESTAMP_NS"), "2024-02-29T12:00:00.000001002Z");
  for (
    const [ms, expected] of [
      [2n ** 63n - 1n, "292278994-08-17T07:12:55.807Z"],
      [1n - 2n ** 63n, "-292275055-05-16T16:47:04.193Z"],
      [29_619_000_000_000_000n, "940558-09-30T00:00:00.000Z"],
      [2n ** 53n - 1n, "287396-10-12T08:59:00.991Z"],
      [-(2n ** 53n) - 1n, "-283457-03-21T15:00:59.007Z"],
    ] as const
  ) assert.equal(formatValue(ms, "DATE"), expected);
  for (let i = 0; i < 5000; i++) {
    const ms = Math.floor(random() / 2 ** 32 * 2e14 - 6e13);
    assert.equal(formatValue(BigInt(ms), "DATE"), new Date(ms).toISOString());
  }
});

Deno.test("UUIDs, addresses and intervals", () => {
  assert.equal(formatValue(0xaabbccdd00112233445566778899aabbn, "UUID"), "aabbccdd-0011-2233-4455-66778899aabb");
  assert.equal(formatValue(0xc0a801fa, "IPv4"), "192.168.1.250");
  assert.equal(
    formatValue((1704164645678000n << 64n) | 1704067200000000n, "INTERVAL"),
    "('2024-01-01T00:00:00.000Z', '2024-01-02T03:04:05.678Z')",
  );
});
