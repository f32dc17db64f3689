/** Hashes of the words of values. */

/** Mixes the bits of a hash into its low bits, by which slots are chosen. Source: the finaliser of MurmurHash3. */
export function mix(hash: number): number {
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}
