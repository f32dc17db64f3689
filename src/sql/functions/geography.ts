/** Geography: geohashes of coordinates, boxes, circles, distances. */
import { f64, i32 } from "../../engine/compiler/ir.ts";
import { NULL_I64, type Value } from "../../types/mod.ts";
import { GEOHASH_BITS_MAX, geohashBits, geohashTag } from "../../types/wide.ts";
import { batchEntry } from "./batch-entry.ts";
import type { BatchColumn, FunctionEntry } from "./entry.ts";
import { wordsOf } from "./instant-words.ts";

const DOUBLE = (name: string) => ({ name, type: "DOUBLE" });

/** Bits alternate between longitude and latitude, longitude first; each halves its range. */
function geohashOf(longitude: number, latitude: number, bits: number): bigint {
  const ranges: [number, number][] = [[-180, 180], [-90, 90]];
  let hash = 0n;
  for (let bit = 0; bit < bits; bit++) {
    const range = ranges[bit % 2], value = bit % 2 === 0 ? longitude : latitude;
    const middle = (range[0] + range[1]) / 2;
    const isUpper = value >= middle;
    range[isUpper ? 0 : 1] = middle;
    hash = hash << 1n | (isUpper ? 1n : 0n);
  }
  return hash;
}

function checkPlace(constants: readonly (Value | undefined)[]) {
  const [longitude, latitude, bits] = constants;
  if (typeof longitude === "number" && Math.abs(longitude) > 180) {
    return { argument: 0, message: "expected a longitude from -180 to 180" };
  }
  if (typeof latitude === "number" && Math.abs(latitude) > 90) {
    return { argument: 1, message: "expected a latitude from -90 to 90" };
  }
  return Number(bits) >= 1 && Number(bits) <= GEOHASH_BITS_MAX
    ? undefined
    : { argument: 2, message: `expected 1 to ${GEOHASH_BITS_MAX} bits` };
}

/** Pairs of latitude and longitude. */
function checkCoordinates(constants: readonly (Value | undefined)[]) {
  const wrong = constants.slice(0, 4).findIndex((value, i) =>
    typeof value === "number" && Math.abs(value) > (i % 2 === 0 ? 90 : 180)
  );
  if (wrong < 0) return undefined;
  return {
    argument: wrong,
    message: wrong % 2 === 0 ? "expected a latitude from -90 to 90" : "expected a longitude from -180 to 180",
  };
}

/** Sets 1 for the geohashes whose bits of the mask are those of `hash`. They are pairs of words. Nulls are negative, and a hash is not. */
function markInside(hashes: Int32Array, insides: Uint8Array, hash: bigint, mask: bigint): void {
  const low = Number(BigInt.asIntN(32, hash)), high = Number(BigInt.asIntN(32, hash >> 32n));
  const lowMask = Number(BigInt.asIntN(32, mask)), highMask = Number(BigInt.asIntN(32, mask >> 32n));
  for (let row = 0; row < insides.length; row++) {
    if (((hashes[2 * row] ^ low) & lowMask) === 0 && ((hashes[2 * row + 1] ^ high) & highMask) === 0) insides[row] = 1;
  }
}

/** Metres for a degree of latitude, and of longitude at the equator. */
const METRES_PER_DEGREE = 111_320;

/** Approximates the ground as flat, with meridians as far apart as at `flatLatitude`. */
function distance(
  latitude: number,
  longitude: number,
  toLatitude: number,
  toLongitude: number,
  flatLatitude: number,
): number {
  const north = (toLatitude - latitude) * METRES_PER_DEGREE;
  const east = (toLongitude - longitude) * METRES_PER_DEGREE * Math.cos(flatLatitude * Math.PI / 180);
  return Math.sqrt(north * north + east * east);
}

/** As in QuestDB, distances from a constant point have the scale of its latitude, others that of the middle of both points. */
const DISTANCE_FROM = "geo_distance_meters_from";
const COORDINATES = [DOUBLE("latitude"), DOUBLE("longitude"), DOUBLE("toLatitude"), DOUBLE("toLongitude")];
const ofRow = (columns: BatchColumn[], row: number): number[] => columns.map(({ values }) => values[row]);

export const geographyFunctions: FunctionEntry[] = [
  batchEntry(
    "make_geohash",
    [DOUBLE("longitude"), DOUBLE("latitude"), { name: "bits", type: "INT", constant: true }],
    (_, constants = []) => geohashTag(Number(constants[2] ?? 1)),
    "The geohash of a point, with a number of bits.",
    ([longitudes, latitudes, bits], out, rowCount) => {
      for (let row = 0; row < rowCount; row++) {
        const longitude = longitudes.values[row], latitude = latitudes.values[row];
        const isPlace = Math.abs(longitude) <= 180 && Math.abs(latitude) <= 90;
        out.values[row] = isPlace ? geohashOf(longitude, latitude, bits.values[row]) : NULL_I64;
      }
    },
    [],
    { check: checkPlace },
  ),
  batchEntry(
    "within",
    [{ name: "geohash", type: "wide" }, { name: "prefix", type: "wide", constant: true, variadic: true }],
    "BOOLEAN",
    "True if the geohash begins with one of the other geohashes.",
    ([column, ...prefixes], out, rowCount) => {
      const bits = geohashBits(column.type)!, hashes = wordsOf(column), insides: Uint8Array = out.values;
      insides.fill(0, 0, rowCount);
      for (const prefix of rowCount === 0 ? [] : prefixes) {
        const isLonger = geohashBits(prefix.type)! > bits, shift = BigInt(Math.abs(bits - geohashBits(prefix.type)!));
        const hash: bigint = isLonger ? prefix.values[0] >> shift : prefix.values[0] << shift;
        // A longer one contains the geohash if all its other bits are 0.
        if (prefix.isNull(0) || (isLonger && hash << shift !== prefix.values[0])) continue;
        markInside(hashes, insides, hash, isLonger ? -1n : -1n << shift);
      }
    },
    [],
    {
      check: (_, types) => {
        const wrong = types.findIndex((type) => geohashBits(type) === undefined);
        return wrong < 0 ? undefined : { argument: wrong, message: "expected a geohash" };
      },
    },
  ),
  batchEntry(
    "within_box",
    [DOUBLE("x"), DOUBLE("y"), DOUBLE("minX"), DOUBLE("minY"), DOUBLE("maxX"), DOUBLE("maxY")],
    "BOOLEAN",
    "True if the point is in the box or on its border.",
    undefined,
    [["within_box(1, 1, 0, 0, 2, 2)", true]],
    {
      emit: ([x, y, minX, minY, maxX, maxY]) =>
        i32.and(i32.and(f64.ge(x, minX), f64.le(x, maxX)), i32.and(f64.ge(y, minY), f64.le(y, maxY))),
    },
  ),
  batchEntry(
    "within_radius",
    [DOUBLE("x"), DOUBLE("y"), DOUBLE("centerX"), DOUBLE("centerY"), DOUBLE("radius")],
    "BOOLEAN",
    "True if the point is in the circle or on its border.",
    (columns, out, rowCount) => {
      for (let row = 0; row < rowCount; row++) {
        const [x, y, centerX, centerY, radius] = ofRow(columns, row);
        out.values[row] = (x - centerX) ** 2 + (y - centerY) ** 2 <= radius ** 2 && radius >= 0 ? 1 : 0;
      }
    },
    [["within_radius(3, 4, 0, 0, 5)", true]],
  ),
  batchEntry(
    "geo_distance_meters",
    COORDINATES,
    "DOUBLE",
    "The distance of two points in metres, accurate for points that are close to each other.",
    (columns, out, rowCount) => {
      for (let row = 0; row < rowCount; row++) {
        const [latitude, longitude, toLatitude, toLongitude] = ofRow(columns, row);
        out.values[row] = distance(latitude, longitude, toLatitude, toLongitude, (latitude + toLatitude) / 2);
      }
    },
    [["geo_distance_meters(0, 0, 0, 1)", 111320]],
    {
      check: checkCoordinates,
      rewrite: ([latitude, longitude]) =>
        latitude === undefined || longitude === undefined ? undefined : { name: DISTANCE_FROM, args: [0, 1, 2, 3] },
    },
  ),
  batchEntry(DISTANCE_FROM, COORDINATES, "DOUBLE", "The same, from a constant point.", (columns, out, rowCount) => {
    for (let row = 0; row < rowCount; row++) {
      const [latitude, longitude, toLatitude, toLongitude] = ofRow(columns, row);
      out.values[row] = distance(latitude, longitude, toLatitude, toLongitude, latitude);
    }
  }),
  batchEntry(
    "geo_within_radius_latlon",
    [...COORDINATES, DOUBLE("meters")],
    "BOOLEAN",
    "True if the distance of two points is at most a number of metres.",
    (columns, out, rowCount) => {
      for (let row = 0; row < rowCount; row++) {
        const [latitude, longitude, toLatitude, toLongitude, meters] = ofRow(columns, row);
        out.values[row] = distance(toLatitude, toLongitude, latitude, longitude, toLatitude) <= meters ? 1 : 0;
      }
    },
    [["geo_within_radius_latlon(48.21, 16.37, 48.22, 16.37, 2000)", true]],
    { check: checkCoordinates },
  ),
];
