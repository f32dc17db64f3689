/** Dialogs over the page. */
import { useLayoutEffect, useRef } from "preact/hooks";

/**
 * Shows the dialog with this ref as long as its component is mounted, and returns the focus afterwards. Its `onClose`
 * is called only if the user closes it.
 */
export function useModal() {
  const dialog = useRef<HTMLDialogElement>(null);
  // A layout effect, because keys typed before the next paint already belong to the dialog.
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
