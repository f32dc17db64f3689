/** The command palette: all actions by name. */
import { ACTIONS, shownKeys } from "./actions.ts";
import { Chooser } from "./chooser.tsx";

export function Palette() {
  return (
    <Chooser
      label="Search commands"
      items={ACTIONS.filter(({ id, isOffered }) => id !== "palette" && isOffered?.() !== false)}
      textOf={({ name }) => name}
      onChoose={(action) => action.run()}
      empty=""
      show={({ name, keys }) => (
        <>
          <span>{name}</span>
          {keys !== undefined && <kbd>{shownKeys(keys)}</kbd>}
        </>
      )}
    />
  );
}
