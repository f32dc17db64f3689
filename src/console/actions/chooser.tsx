/** A searchable list over the page, for the command palette and the history. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useModal } from "../app/modal.ts";
import { closePanel } from "../store/panels.ts";

interface ChooserProps<T> {
  label: string;
  items: readonly T[];
  textOf(item: T): string;
  show(item: T): ComponentChildren;
  onChoose(item: T): void;
  empty: string;
}

const SHOWN_MAX = 100;

export function Chooser<T>({ label, items, textOf, show, onChoose, empty }: ChooserProps<T>) {
  const dialog = useModal();
  const [search, setSearch] = useState("");
  const [index, setIndex] = useState(0);
  const words = search.toLowerCase().split(/\s+/).filter((word) => word !== "");
  const found = items.filter((item) => words.every((word) => textOf(item).toLowerCase().includes(word))).slice(
    0,
    SHOWN_MAX,
  );
  const chosen = Math.min(index, found.length - 1);
  useEffect(() => dialog.current!.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }));
  const choose = (item: T | undefined) => {
    if (item === undefined) return;
    closePanel();
    onChoose(item);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0) setIndex((chosen + step + found.length) % Math.max(1, found.length));
    else if (event.key === "Enter") choose(found[chosen]);
    else return;
    event.preventDefault();
  };
  return (
    <dialog
      class="chooser"
      ref={dialog}
      aria-label={label}
      onClose={closePanel}
      onClick={(event) => event.target === dialog.current && closePanel()}
    >
      <input
        type="text"
        role="combobox"
        aria-expanded="true"
        aria-controls="chooser-list"
        aria-activedescendant={found.length > 0 ? `chosen-${chosen}` : undefined}
        aria-label={label}
        placeholder={label}
        value={search}
        onInput={(event) => {
          setSearch(event.currentTarget.value);
          setIndex(0);
        }}
        onKeyDown={onKeyDown}
        autofocus
      />
      <ul id="chooser-list" role="listbox" aria-label={label}>
        {found.map((item, at) => (
          <li
            key={at}
            id={`chosen-${at}`}
            role="option"
            aria-selected={at === chosen}
            onClick={() => choose(item)}
            onMouseMove={() => setIndex(at)}
          >
            {show(item)}
          </li>
        ))}
      </ul>
      {found.length === 0 && <p class="empty">{search === "" ? empty : "Nothing found."}</p>}
    </dialog>
  );
}
