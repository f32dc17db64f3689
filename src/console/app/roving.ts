/** Lists of which only one entry is reached by Tab; the others are reached by arrow keys. */
import { useLayoutEffect } from "preact/hooks";

interface Options {
  /** Selects what is reached by arrow keys. */
  entry: string;
  /** Selects what belongs to an entry and is reached by Tab after it. */
  row: string;
  onKey?(event: KeyboardEvent, entry: HTMLElement): void;
}

/** The entries must have `tabIndex={-1}`. */
export function useRoving(box: { readonly current: HTMLElement | null }, { entry, row, onKey }: Options): void {
  const entries = () => [...box.current!.querySelectorAll<HTMLElement>(entry)];
  const setCurrent = (current: Element | null) => {
    for (const element of box.current!.querySelectorAll<HTMLElement>("[tabindex='0']")) element.tabIndex = -1;
    for (const element of current?.querySelectorAll<HTMLElement>("button") ?? []) element.tabIndex = 0;
  };
  // The current entry may be gone.
  useLayoutEffect(() => {
    if (box.current!.querySelector("[tabindex='0']") === null) setCurrent(entries()[0]?.closest(row) ?? null);
  });
  useLayoutEffect(() => {
    const element = box.current!;
    const onFocus = ({ target }: FocusEvent) => setCurrent((target as Element).closest(row));
    const onKeyDown = (event: KeyboardEvent) => {
      const all = entries(), current = (event.target as Element).closest<HTMLElement>(entry);
      if (current === null || event.ctrlKey || event.altKey || event.metaKey) return;
      const at = all.indexOf(current);
      const next = { ArrowDown: all[at + 1], ArrowUp: all[at - 1], Home: all[0], End: all.at(-1) };
      if (!Object.hasOwn(next, event.key)) return onKey?.(event, current);
      event.preventDefault();
      // There is none beyond the first and the last entry.
      next[event.key as keyof typeof next]?.focus();
    };
    element.addEventListener("focusin", onFocus);
    element.addEventListener("keydown", onKeyDown);
    return () => {
      element.removeEventListener("focusin", onFocus);
      element.removeEventListener("keydown", onKeyDown);
    };
  }, []);
}
