/** The layout of the page. */
import { useEffect } from "preact/hooks";
import { action, listenForKeys, shownKeys } from "../actions/actions.ts";
import { HistoryPanel } from "../actions/history-panel.tsx";
import { ImportPanel, listenForDrops } from "../import/import-panel.tsx";
import { linkedText } from "../actions/link.ts";
import { Palette } from "../actions/palette.tsx";
import { statementsOf } from "../editor/statements.ts";
import { onlyReads } from "../server/client.ts";
import { Editor, editor } from "../editor/editor.tsx";
import { Results } from "../results/results.tsx";
import { notice, notify } from "../store/notices.ts";
import { isTreeOpen, panel } from "../store/panels.ts";
import { isRunning, restoreRuns } from "../store/runs.ts";
import { loadSchema } from "../store/schema.ts";
import { activeTab, openTab } from "../store/tabs.ts";
import { AccountMenu } from "../sign-in/account-menu.tsx";
import { AccountPanel } from "../sign-in/account-panel.tsx";
import { CreateTablePanel } from "../schema/create-table.tsx";
import { Tree } from "../schema/tree.tsx";
import { DashboardsPage } from "../dashboards/dashboards-page.tsx";
import { ServerPage } from "../server-page/server-page.tsx";
import { page } from "../store/pages.ts";
import { Away } from "./away.tsx";
import { keepFocus } from "./kept-focus.ts";
import { Dialogs } from "./dialogs.tsx";
import { Menu } from "./menu.tsx";
import { PageLinks } from "./page-links.tsx";
import { Splitter } from "./splitter.tsx";
import { TabBar } from "./tab-bar.tsx";

export function App() {
  useEffect(() => {
    restoreRuns();
    loadSchema();
    openLink();
    const stops = [listenForKeys(), listenForDrops(), keepFocus()];
    return () => stops.forEach((stop) => stop());
  }, []);
  const isQuery = page.value.name === "query";
  return (
    <>
      <header>
        {isQuery && <Button id="tree" text="☰" />}
        <h1>Sundial</h1>
        <PageLinks />
        {isQuery && <TabBar />}
        <nav aria-label="Commands">
          <Button id="history" text="History" />
          <Button id="palette" text="Commands" />
          <Button id="theme" text="◐" />
          <AccountMenu />
        </nav>
      </header>
      <Away />
      {page.value.name === "dashboards" && <DashboardsPage id={page.value.id} />}
      {page.value.name === "server" && <ServerPage section={page.value.section} />}
      {/* Stays mounted, to keep the editor's undo history and running statements. */}
      <main hidden={!isQuery}>
        {isTreeOpen.value && <Tree />}
        <Splitter
          top={
            <>
              <div class="toolbar">
                {isRunning.value ? <Button id="cancel" text="Cancel" isMain /> : <Button id="run" text="Run" isMain />}
                <Button id="run-all" text="Run all" />
                <Button id="format" text="Format" />
                <Button id="link" text="Copy link" />
              </div>
              <Editor />
            </>
          }
          bottom={<Results />}
        />
      </main>
      {panel.value === "palette" && <Palette />}
      {panel.value === "history" && <HistoryPanel />}
      {panel.value === "account" && <AccountPanel />}
      <Menu />
      <Dialogs />
      <CreateTablePanel />
      <ImportPanel />
      <p class="notice" role="alert" hidden={notice.value === ""}>{notice.value}</p>
    </>
  );
}

function Button({ id, text, isMain }: { id: string; text: string; isMain?: boolean }) {
  const { name, keys, run } = action(id);
  const title = keys === undefined ? name : `${name} (${shownKeys(keys)})`;
  const label = /\w/.test(text) ? undefined : name;
  return (
    <button type="button" class={isMain ? "main" : ""} title={title} aria-label={label} data-id={id} onClick={run}>
      {text}
    </button>
  );
}

/** Opens the text in the page's address. */
async function openLink(): Promise<void> {
  const linked = linkedText(location.search);
  if (linked === undefined) return;
  // Prevents a reload from running it again.
  globalThis.history.replaceState(null, "", location.pathname);
  openTab(linked.text, "Link");
  const { id } = activeTab.value;
  const statements = statementsOf(linked.text).map(({ text }) => text);
  const runs = linked.runs && (await Promise.all(statements.map(onlyReads))).every(Boolean);
  const isAsBefore = activeTab.value.id === id && activeTab.value.text === linked.text;
  if (runs && isAsBefore) editor.runAll();
  else notify("The text of the link is in a new tab and was not run.");
}
