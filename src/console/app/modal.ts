/** Dialogs over the page. */
import { useLayoutEffect, useRef } from "preact/hooks";

/**
 * Shows the dialog with this ref as long as its component is mounted, and gives the focus back afterwards. Its `onClose` is called only
 * if the user closes it.
 */
export function useModal() {
  const dialog = useRef<HTMLDialogElement>(null);
  // Not after the next paint: the letters of the next key belong to the dialog.
  useLayoutEffect(() => {
    const element = dialog.current!;
    element.showModal();
    return () => {
      element.addEventListener("close", (event) => event.stopImmediatePropagation(), { capture: true });
      element.close();
    };
  }, []);
  return dialog;
}
