/**
 * Keeps the focus when its element is removed or hidden, such as a button that is gone once it was used. The browser would
 * put the focus at the start of the document, and users of the keyboard would lose their place.
 */

const FOCUSABLE = "a[href], button:not(:disabled), input:not(:disabled), select:not(:disabled), textarea, summary, " +
  '[tabindex]:not([tabindex="-1"])';

export function keepFocus(): () => void {
  /** The last element with the focus, and those around it. */
  let path: readonly Element[] = [];
  const onFocus = ({ target }: FocusEvent) => {
    if (target instanceof Element) path = [...withAncestors(target)];
  };
  const check = () => {
    const { activeElement, body } = document, [last] = path;
    const isLost = activeElement === null || activeElement === body || !isShown(activeElement);
    if (!isLost || last === undefined || isShown(last)) return;
    const around = path.find((element) => element !== body && element.id !== "app" && isShown(element));
    const first = firstIn(around) ?? firstIn(document.querySelector("main:not([hidden])")) ?? firstIn(body);
    first?.focus({ preventScroll: true });
  };
  const observer = new MutationObserver(check);
  observer.observe(document.body, { childList: true, subtree: true, attributes: true, attributeFilter: ["hidden"] });
  document.addEventListener("focusin", onFocus);
  return () => {
    observer.disconnect();
    document.removeEventListener("focusin", onFocus);
  };
}

/** The first that can have the focus. The editor comes before the tables beside it. */
function firstIn(place: Element | null | undefined): HTMLElement | undefined {
  if (place == null) return undefined;
  const all = [...place.querySelectorAll<HTMLElement>(FOCUSABLE)];
  return all.find((element) => element.matches(".cm-content") && isShown(element)) ?? all.find(isShown);
}

function* withAncestors(element: Element): Generator<Element> {
  for (let one: Element | null = element; one !== null; one = one.parentElement) yield one;
}

const isShown = (element: Element) => element.isConnected && element.checkVisibility({ visibilityProperty: true });
