/** A menu next to its element, usable with mouse and arrow keys. */
import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";

export interface MenuItem {
  name: string;
  /** For alternatives: true for the current one. */
  isChosen?: boolean;
  run(): void;
}

interface Opened {
  anchor: HTMLElement;
  items: readonly MenuItem[];
  /** The element that gets the focus afterwards. */
  back: HTMLElement;
}

const open = signal<Opened | undefined>(undefined);

export function openMenu(anchor: HTMLElement, items: readonly MenuItem[]): void {
  const { activeElement } = document;
  const back = activeElement instanceof HTMLElement && activeElement !== document.body ? activeElement : anchor;
  open.value = { anchor, items, back };
}

export function Menu() {
  const { value } = open;
  return value === undefined ? null : <OpenMenu {...value} />;
}

function OpenMenu({ anchor, items, back }: Opened) {
  const box = useRef<HTMLDivElement>(null);
  const close = () => {
    // The event of a closed menu comes later than the next key, which may have moved the focus.
    const { activeElement, body } = document, isLost = activeElement === body || box.current!.contains(activeElement);
    open.value = undefined;
    if (isLost) back.focus();
  };
  useLayoutEffect(() => {
    const menu = box.current!, { left, bottom, top } = anchor.getBoundingClientRect();
    menu.showPopover();
    const { width, height } = menu.getBoundingClientRect();
    menu.style.left = `${Math.max(4, Math.min(left, innerWidth - width - 4))}px`;
    menu.style.top = `${bottom + height < innerHeight ? bottom : Math.max(4, top - height)}px`;
    menu.querySelector("button")?.focus();
  }, [anchor, items]);
  const onKeyDown = (event: KeyboardEvent) => {
    const buttons = [...box.current!.querySelectorAll("button")];
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    const index = buttons.indexOf(document.activeElement as HTMLButtonElement);
    buttons.at((index + step) % buttons.length)?.focus();
  };
  return (
    <div
      class="menu"
      popover="auto"
      role="menu"
      ref={box}
      onKeyDown={onKeyDown}
      onToggle={(event) => (event as unknown as ToggleEvent).newState === "closed" && close()}
    >
      {items.map(({ name, isChosen, run }) => (
        <button
          key={name}
          type="button"
          role={isChosen === undefined ? "menuitem" : "menuitemradio"}
          aria-checked={isChosen}
          onClick={() => {
            close();
            run();
          }}
        >
          {name}
        </button>
      ))}
    </div>
  );
}

export function MenuButton({ text, items }: { text: string; items: readonly MenuItem[] }) {
  return (
    <button type="button" aria-haspopup="menu" onClick={(event) => openMenu(event.currentTarget, items)}>
      {text} ▾
    </button>
  );
}
