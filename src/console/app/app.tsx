/** The layout of the page. */
import { Editor } from "../editor/editor.tsx";
import { Results } from "../results/results.tsx";
import { cancel, isRunning } from "../store/session.ts";

export function App() {
  return (
    <>
      <header>
        <h1>Sundial</h1>
        <span class="hint">
          <kbd>Ctrl</kbd> + <kbd>Enter</kbd> runs the statement at the cursor, or the selection
        </span>
        {isRunning.value && <button type="button" onClick={cancel}>Cancel</button>}
      </header>
      <main>
        <Editor />
        <Results />
      </main>
    </>
  );
}
