/**
 * The opcodes that the compiler uses, by their text names. An opcode with a prefix byte is written `[prefix, number]`.
 * @see https://webassembly.github.io/spec/core/binary/instructions.html
 */

/** Consecutive opcodes without prefix: the first number, then the names in order. */
const RUNS: [first: number, names: string][] = [
  [0x1b, "select"],
  [
    0x28,
    "i32.load i64.load f32.load f64.load i32.load8_s i32.load8_u i32.load16_s i32.load16_u i64.load8_s i64.load8_u i64.load16_s i64.load16_u " +
    "i64.load32_s i64.load32_u i32.store i64.store f32.store f64.store i32.store8 i32.store16 i64.store8 i64.store16 i64.store32",
  ],
  [
    0x45,
    "i32.eqz i32.eq i32.ne i32.lt_s i32.lt_u i32.gt_s i32.gt_u i32.le_s i32.le_u i32.ge_s i32.ge_u " +
    "i64.eqz i64.eq i64.ne i64.lt_s i64.lt_u i64.gt_s i64.gt_u i64.le_s i64.le_u i64.ge_s i64.ge_u " +
    "f32.eq f32.ne f32.lt f32.gt f32.le f32.ge f64.eq f64.ne f64.lt f64.gt f64.le f64.ge " +
    "i32.clz i32.ctz i32.popcnt i32.add i32.sub i32.mul i32.div_s i32.div_u i32.rem_s i32.rem_u i32.and i32.or i32.xor i32.shl i32.shr_s i32.shr_u i32.rotl i32.rotr " +
    "i64.clz i64.ctz i64.popcnt i64.add i64.sub i64.mul i64.div_s i64.div_u i64.rem_s i64.rem_u i64.and i64.or i64.xor i64.shl i64.shr_s i64.shr_u i64.rotl i64.rotr " +
    "f32.abs f32.neg f32.ceil f32.floor f32.trunc f32.nearest f32.sqrt f32.add f32.sub f32.mul f32.div f32.min f32.max f32.copysign " +
    "f64.abs f64.neg f64.ceil f64.floor f64.trunc f64.nearest f64.sqrt f64.add f64.sub f64.mul f64.div f64.min f64.max f64.copysign " +
    "i32.wrap_i64 i32.trunc_f32_s i32.trunc_f32_u i32.trunc_f64_s i32.trunc_f64_u i64.extend_i32_s i64.extend_i32_u i64.trunc_f32_s i64.trunc_f32_u i64.trunc_f64_s i64.trunc_f64_u " +
    "f32.convert_i32_s f32.convert_i32_u f32.convert_i64_s f32.convert_i64_u f32.demote_f64 f64.convert_i32_s f64.convert_i32_u f64.convert_i64_s f64.convert_i64_u f64.promote_f32 " +
    "i32.reinterpret_f32 i64.reinterpret_f64 f32.reinterpret_i32 f64.reinterpret_i64 i32.extend8_s i32.extend16_s i64.extend8_s i64.extend16_s i64.extend32_s",
  ],
];

const SATURATING =
  "i32.trunc_sat_f32_s i32.trunc_sat_f32_u i32.trunc_sat_f64_s i32.trunc_sat_f64_u i64.trunc_sat_f32_s i64.trunc_sat_f32_u i64.trunc_sat_f64_s i64.trunc_sat_f64_u";

const SIMD_RUNS: [first: number, names: string][] = [
  [
    0x00,
    "v128.load v128.load8x8_s v128.load8x8_u v128.load16x4_s v128.load16x4_u v128.load32x2_s v128.load32x2_u v128.load8_splat v128.load16_splat " +
    "v128.load32_splat v128.load64_splat v128.store v128.const i8x16.shuffle i8x16.swizzle i8x16.splat i16x8.splat i32x4.splat i64x2.splat f32x4.splat f64x2.splat",
  ],
  [
    0x1b,
    "i32x4.extract_lane i32x4.replace_lane i64x2.extract_lane i64x2.replace_lane f32x4.extract_lane f32x4.replace_lane f64x2.extract_lane f64x2.replace_lane",
  ],
  [0x23, "i8x16.eq i8x16.ne i8x16.lt_s i8x16.lt_u - - - i8x16.le_u"],
  [0x34, "i16x8.le_u"],
  [
    0x37,
    "i32x4.eq i32x4.ne i32x4.lt_s i32x4.lt_u i32x4.gt_s i32x4.gt_u i32x4.le_s i32x4.le_u i32x4.ge_s i32x4.ge_u " +
    "f32x4.eq f32x4.ne f32x4.lt f32x4.gt f32x4.le f32x4.ge f64x2.eq f64x2.ne f64x2.lt f64x2.gt f64x2.le f64x2.ge " +
    "v128.not v128.and v128.andnot v128.or v128.xor v128.bitselect v128.any_true " +
    "v128.load8_lane v128.load16_lane v128.load32_lane v128.load64_lane v128.store8_lane v128.store16_lane v128.store32_lane v128.store64_lane v128.load32_zero v128.load64_zero " +
    "f32x4.demote_f64x2_zero f64x2.promote_low_f32x4",
  ],
  [0x64, "i8x16.bitmask i8x16.narrow_i16x8_s"],
  [0x71, "i8x16.sub"],
  [0x74, "f64x2.ceil f64x2.floor"],
  [0x7a, "f64x2.trunc"],
  [
    0x84,
    "i16x8.bitmask i16x8.narrow_i32x4_s i16x8.narrow_i32x4_u i16x8.extend_low_i8x16_s i16x8.extend_high_i8x16_s i16x8.extend_low_i8x16_u",
  ],
  [0x91, "i16x8.sub"],
  [0x94, "f64x2.nearest"],
  [
    0xa3,
    "i32x4.all_true i32x4.bitmask - - i32x4.extend_low_i16x8_s i32x4.extend_high_i16x8_s i32x4.extend_low_i16x8_u i32x4.extend_high_i16x8_u " +
    "i32x4.shl i32x4.shr_s i32x4.shr_u i32x4.add - - i32x4.sub - - - i32x4.mul i32x4.min_s i32x4.min_u i32x4.max_s i32x4.max_u",
  ],
  [
    0xc0,
    "i64x2.abs i64x2.neg - i64x2.all_true i64x2.bitmask - - i64x2.extend_low_i32x4_s i64x2.extend_high_i32x4_s i64x2.extend_low_i32x4_u i64x2.extend_high_i32x4_u " +
    "i64x2.shl i64x2.shr_s i64x2.shr_u i64x2.add - - i64x2.sub - - - i64x2.mul i64x2.eq i64x2.ne i64x2.lt_s i64x2.gt_s i64x2.le_s i64x2.ge_s " +
    "i64x2.extmul_low_i32x4_s i64x2.extmul_high_i32x4_s i64x2.extmul_low_i32x4_u i64x2.extmul_high_i32x4_u",
  ],
  [0xe4, "f32x4.add f32x4.sub f32x4.mul f32x4.div f32x4.min f32x4.max"],
  [
    0xec,
    "f64x2.abs f64x2.neg - f64x2.sqrt f64x2.add f64x2.sub f64x2.mul f64x2.div f64x2.min f64x2.max f64x2.pmin f64x2.pmax",
  ],
  [
    0xfc,
    "i32x4.trunc_sat_f64x2_s_zero i32x4.trunc_sat_f64x2_u_zero f64x2.convert_low_i32x4_s f64x2.convert_low_i32x4_u",
  ],
];

const PREFIX_SATURATING = 0xfc;
const PREFIX_SIMD = 0xfd;
export const PREFIX_ATOMIC = 0xfe;

export const OPCODE: ReadonlyMap<string, readonly [prefix: number, number: number]> = (() => {
  const codes = new Map<string, [number, number]>();
  const add = (prefix: number, first: number, names: string) =>
    names.split(" ").forEach((name, k) => name !== "-" && codes.set(name, [prefix, first + k]));
  for (const [first, names] of RUNS) add(0, first, names);
  add(PREFIX_SATURATING, 0, SATURATING);
  for (const [first, names] of SIMD_RUNS) add(PREFIX_SIMD, first, names);
  add(PREFIX_ATOMIC, 0x10, "i32.atomic.load i64.atomic.load");
  add(PREFIX_ATOMIC, 0x1e, "i32.atomic.rmw.add i64.atomic.rmw.add");
  add(PREFIX_ATOMIC, 0x33, "i32.atomic.rmw.or i64.atomic.rmw.or");
  return codes;
})();

/** log2 of the natural alignment in bytes, which loads and stores declare. Atomic accesses must be aligned. */
export function alignmentOf(name: string): number {
  if (name.startsWith("v128.")) return 0; // columns may start at any row
  if (name.includes("8")) return 0;
  if (name.includes("16")) return 1;
  if (name.startsWith("i64.load32") || name === "i64.store32") return 2;
  return name.startsWith("i64") || name.startsWith("f64") ? 3 : 2;
}
