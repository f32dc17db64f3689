/** Lets a link lead to one directory and the other in turn, until its thread is ended. */
const scope = self as unknown as { onmessage: ((event: MessageEvent<[string, string, string]>) => void) | null };

scope.onmessage = ({ data: [first, second, path] }) => {
  for (let turn = 0;; turn++) {
    Deno.symlinkSync(turn % 2 === 0 ? first : second, `${path}.new`);
    Deno.renameSync(`${path}.new`, path);
  }
};
