/** The tabs of the editor. */
import { useState } from "preact/hooks";
import { activeTab, closeTab, openTab, renameTab, selectTab, type Tab, tabs } from "../store/tabs.ts";

export function TabBar() {
  return (
    <div class="tabs" role="group" aria-label="Queries">
      {tabs.value.map((tab) => <TabItem key={tab.id} tab={tab} />)}
      <button type="button" class="icon" aria-label="New tab" title="New tab" onClick={() => openTab()}>+</button>
    </div>
  );
}

function TabItem({ tab: { id, name } }: { tab: Tab }) {
  const [isRenaming, setRenaming] = useState(false);
  const isActive = activeTab.value.id === id;
  const rename = (value: string) => {
    renameTab(id, value);
    setRenaming(false);
  };
  return (
    <div class="tab" data-active={isActive}>
      {isRenaming
        ? (
          <input
            value={name}
            aria-label="Name of the tab"
            ref={(input) => input?.select()}
            onBlur={(event) => rename(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === "Enter") rename(event.currentTarget.value);
              if (event.key === "Escape") setRenaming(false);
            }}
          />
        )
        : (
          <button
            type="button"
            aria-current={isActive ? "true" : undefined}
            title={`${name} (double click renames)`}
            onClick={() => selectTab(id)}
            onDblClick={() => setRenaming(true)}
          >
            {name}
          </button>
        )}
      <button type="button" class="icon" aria-label={`Close ${name}`} onClick={() => closeTab(id)}>×</button>
    </div>
  );
}
