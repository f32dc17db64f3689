/** Reproducible archives: one time for all files, no owner, sorted names. */
import { gzipSync } from "node:zlib";
import { zipSync } from "fflate";
import { createTar } from "nanotar";

export interface ArchiveFile {
  /** With `/` as separator. */
  path: string;
  bytes: Uint8Array;
  executable?: boolean;
}

const modeOf = ({ executable }: ArchiveFile) => (executable ? 0o755 : 0o644);
const sorted = (files: ArchiveFile[]) => files.toSorted((a, b) => (a.path < b.path ? -1 : 1));

export function tarGz(files: ArchiveFile[], time: Date): Uint8Array {
  const tar = createTar(
    sorted(files).map((file) => ({
      name: file.path,
      data: file.bytes,
      attrs: { mode: modeOf(file).toString(8), mtime: time.getTime(), uid: 0, gid: 0, user: "", group: "" },
    })),
  );
  return gzipSync(tar, { level: 9 });
}

export function zip(files: ArchiveFile[], time: Date): Uint8Array {
  // Times in zip files are local, so convert to the local time that reads like `time` in UTC.
  const [year, month, ...rest] = time.toISOString().split(/[-T:.]/).slice(0, 6).map(Number);
  const [day, hour, minute, second] = rest;
  const mtime = new Date(year, month - 1, day, hour, minute, second);
  return zipSync(Object.fromEntries(
    // System 3 is Unix: the upper two bytes are the file mode.
    sorted(files).map((file) => [file.path, [file.bytes, { mtime, os: 3, attrs: (0o100000 | modeOf(file)) << 16 }]]),
  ));
}
