/** Saves files for the user. */

/** Time for which browsers may still read a file that is being saved. */
const READ_MS = 60_000;

export function saveFile(name: string, parts: BlobPart[], type: string): void {
  saveBlob(name, new Blob(parts, { type }));
}

export function saveBlob(name: string, blob: Blob): void {
  const url = URL.createObjectURL(blob);
  saveAddress(url, name);
  setTimeout(() => URL.revokeObjectURL(url), READ_MS);
}

/** `name` is used if the server names no file. */
export function saveAddress(url: string, name = ""): void {
  Object.assign(document.createElement("a"), { href: url, download: name }).click();
}
