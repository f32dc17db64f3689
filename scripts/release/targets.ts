/** Deno's targets, with their usual names. */
export const TARGETS: Readonly<Record<string, string>> = {
  "x86_64-unknown-linux-gnu": "linux-x64",
  "aarch64-unknown-linux-gnu": "linux-arm64",
  "x86_64-apple-darwin": "macos-x64",
  "aarch64-apple-darwin": "macos-arm64",
  "x86_64-pc-windows-msvc": "windows-x64",
};

/** Names of the archive and of the executable in it. */
export function namesOf(system: string, version: string): { archive: string; program: string } {
  const isWindows = system.startsWith("windows");
  return {
    archive: `sundial-${version}-${system}.${isWindows ? "zip" : "tar.gz"}`,
    program: isWindows ? "sundial.exe" : "sundial",
  };
}
