/** Points a link to one directory and the other in turn, until it is told to end. */
const scope = self as unknown as {
  onmessage: ((event: MessageEvent<[string, string, string, Int32Array]>) => void) | null;
};

scope.onmessage = ({ data: [first, second, path, state] }) => {
  for (let turn = 0; Atomics.load(state, 0) === 0; turn++) {
    Deno.symlinkSync(turn % 2 === 0 ? first : second, `${path}.new`);
    Deno.renameSync(`${path}.new`, path);
  }
  Atomics.store(state, 0, 2);
  Atomics.notify(state, 0);
};
