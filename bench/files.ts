export async function exists(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}

/** Removes a file or directory, if there is one. */
export async function remove(path: string): Promise<void> {
  if (await exists(path)) await Deno.remove(path, { recursive: true });
}
