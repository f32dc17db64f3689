/**
 * Reads from an executable's bytes what `deno compile` has embedded. The format is internal to Deno, as of the version in use; a test
 * that reads an executable detects changes.
 *
 *     magic "d3n0l4nd"   u64 size, metadata as JSON   u64 size, npm packages   remote modules: 12 zeros if there are none
 *     u64 size, tree of files as JSON   u64 size, their bytes   magic "d3n0l4nd"
 */

export interface Executable {
  permissions: Record<string, unknown>;
  v8Flags: string[];
  unstableFeatures: string[];
  entry: string;
  /** `name@version`. */
  packages: string[];
  files: { path: string; sizeBytes: number; timeMs: number }[];
  /** All embedded bytes, for searching. */
  bytes: Uint8Array;
}

interface Metadata {
  permissions: Record<string, unknown>;
  v8_flags: string[];
  unstable_config: { features: string[] };
  entrypoint_key: string;
}

type Entry =
  | { Dir: { n: string; e: Entry[] } }
  | { File: { n: string; o: [number, number]; t: number } };

const MAGIC = new TextEncoder().encode("d3n0l4nd");
const NO_REMOTE_MODULES_BYTES = 12;

export function readExecutable(path: string): Executable {
  const bytes = Deno.readFileSync(path);
  const view = new DataView(bytes.buffer);
  const text = new TextDecoder();
  for (let start = find(bytes, 0); start >= 0; start = find(bytes, start + 1)) {
    let at = start + MAGIC.length;
    const section = () => {
      const size = Number(view.getBigUint64(at, true));
      at += 8 + size;
      return bytes.subarray(at - size, at);
    };
    // The runtime's constants contain the magic too.
    if (!text.decode(bytes.subarray(at + 8, at + 16)).startsWith(`{"argv":`)) continue;
    const metadata = JSON.parse(text.decode(section())) as Metadata;
    const npm = section();
    if (bytes.subarray(at, at + NO_REMOTE_MODULES_BYTES).some((byte) => byte !== 0)) {
      throw new Error(`${path} has remote modules`);
    }
    at += NO_REMOTE_MODULES_BYTES;
    const entries = JSON.parse(text.decode(section())) as Entry[];
    return {
      permissions: metadata.permissions,
      v8Flags: metadata.v8_flags,
      unstableFeatures: metadata.unstable_config.features,
      entry: metadata.entrypoint_key,
      packages: packageIds(npm),
      files: entries.flatMap((entry) => flatten(entry, "")),
      bytes: bytes.subarray(start),
    };
  }
  throw new Error(`${path} is no executable of deno compile`);
}

function find(bytes: Uint8Array, from: number): number {
  for (let at = bytes.indexOf(MAGIC[0], from); at >= 0; at = bytes.indexOf(MAGIC[0], at + 1)) {
    if (MAGIC.every((byte, index) => bytes[at + index] === byte)) return at;
  }
  return -1;
}

/** u32 count, count × (u32 size, id), then the dependencies. */
function packageIds(bytes: Uint8Array): string[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 4;
  return Array.from({ length: view.getUint32(0, true) }, () => {
    const size = view.getUint32(at, true);
    at += 4 + size;
    return new TextDecoder().decode(bytes.subarray(at - size, at));
  });
}

function flatten(entry: Entry, parent: string): Executable["files"] {
  if ("Dir" in entry) return entry.Dir.e.flatMap((child) => flatten(child, `${parent}${entry.Dir.n}/`));
  const { n, o: [, sizeBytes], t } = entry.File;
  return [{ path: `${parent}${n}`, sizeBytes, timeMs: t }];
}
