/** The tables of the database with their columns and actions. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { shownText } from "../results/cells.ts";
import { zone } from "../results/view-settings.ts";
import { bytesText, countText } from "../results/summary.ts";
import {
  columnsOf,
  type ColumnStorage,
  refreshSchema,
  schemaVersion,
  storageOf,
  type Table,
  type TableColumn,
  tables,
} from "../store/schema.ts";
import { chooseFile } from "../import/import-panel.tsx";
import { may, mayImport } from "../sign-in/permissions.ts";
import { openMenu } from "../app/menu.tsx";
import { useRoving } from "../app/roving.ts";
import { createTable } from "./create-table.tsx";
import { columnActions, tableActions } from "./table-actions.ts";

/** Further tables are found by the search. */
const SHOWN_MAX = 500;

export function Tree() {
  const search = useSignal("");
  const words = search.value.trim().toLowerCase();
  const found = tables.value.filter(({ name }) => name.toLowerCase().includes(words));
  const list = useRef<HTMLUListElement>(null);
  useRoving(list, { entry: ".name", row: ".item", onKey: openByArrows });
  return (
    <nav class="tree" aria-label="Tables">
      <div class="tree-head">
        <input
          type="search"
          placeholder={`Search ${countText(tables.value.length, "table")}`}
          aria-label="Search tables"
          value={search.value}
          onInput={(event) => search.value = event.currentTarget.value}
          onKeyDown={(event) => {
            if (event.key !== "ArrowDown") return;
            event.preventDefault();
            list.current!.querySelector<HTMLElement>(".name")?.focus();
          }}
        />
        {may("CREATE TABLE") && (
          <button type="button" class="icon" aria-label="Create a table" title="Create a table" onClick={createTable}>
            +
          </button>
        )}
        {mayImport() && (
          <button
            type="button"
            class="icon"
            aria-label="Import a CSV or Parquet file"
            title="Import a CSV or Parquet file (or drop it on the page)"
            onClick={chooseFile}
          >
            ⇪
          </button>
        )}
        <button type="button" class="icon" aria-label="Refresh the tables" title="Refresh" onClick={refreshSchema}>
          ↻
        </button>
      </div>
      <ul role="tree" aria-label="Tables" ref={list}>
        {found.slice(0, SHOWN_MAX).map((table) => <TableItem key={table.name} table={table} />)}
      </ul>
      {tables.value.length === 0 && (
        <p class="empty">
          {may("CREATE TABLE")
            ? (
              <>
                No tables yet. Run{" "}
                <code>
                  create table trades as (select * from read_parquet('trades.parquet')) timestamp(timestamp)
                </code>{" "}
                to make one of the demo file.
              </>
            )
            : "There is no table that you may use."}
        </p>
      )}
      {found.length > SHOWN_MAX && (
        <p class="empty">{(found.length - SHOWN_MAX).toLocaleString("en")} more: search for them.</p>
      )}
    </nav>
  );
}

function TableItem({ table }: { table: Table }) {
  const [isOpen, setOpen] = useState(false);
  const [columns, setColumns] = useState<readonly TableColumn[]>([]);
  const [storage, setStorage] = useState<ReadonlyMap<string, ColumnStorage>>(new Map());
  useEffect(() => {
    if (!isOpen) return;
    columnsOf(table.name).then(setColumns);
    storageOf(table.name).then(setStorage);
  }, [isOpen, schemaVersion.value]);
  const { name, rowCount, diskBytes, partitionBy, lastWrite, kind } = table;
  const size = kind === "view" ? kind : countText(rowCount);
  const details = kind === "view" ? [] : [
    ...kind === "table" ? [] : [kind],
    `${bytesText(diskBytes)} on disk`,
    partitionBy === "NONE" ? "not partitioned" : `partitioned by ${partitionBy.toLowerCase()}`,
    ...lastWrite === null ? [] : [`last write ${shownText(lastWrite, "TIMESTAMP", zone.value).replace(/\.\d+/, "")}`],
  ];
  const showMenu = (target: HTMLElement) => openMenu(target, tableActions(table));
  return (
    <li role="treeitem" aria-expanded={isOpen}>
      <div class="item" title={[size, ...details].join("\n")} onContextMenu={menuOn(showMenu)}>
        <button type="button" class="name" tabIndex={-1} onClick={() => setOpen(!isOpen)}>
          <span class="arrow" aria-hidden="true">{isOpen ? "▾" : "▸"}</span>
          <span>{name}</span>
          <small>{size}</small>
        </button>
        <button
          type="button"
          class="icon"
          tabIndex={-1}
          aria-label={`Actions of ${name}`}
          aria-haspopup="menu"
          onClick={(event) => showMenu(event.currentTarget)}
        >
          ⋯
        </button>
      </div>
      {isOpen && (
        <ul role="group">
          {details.length > 0 && <li role="treeitem" class="details">{details.join(" · ")}</li>}
          {columns.map((column) => (
            <ColumnItem key={column.name} table={table} column={column} storage={storage.get(column.name)} />
          ))}
        </ul>
      )}
    </li>
  );
}

/** The right arrow opens a table, the left one closes it, and leads from a column to its table. */
function openByArrows(event: KeyboardEvent, entry: HTMLElement): void {
  if (event.key !== "ArrowRight" && event.key !== "ArrowLeft") return;
  event.preventDefault();
  const item = entry.closest<HTMLElement>("[role=treeitem]")!, isOpen = item.getAttribute("aria-expanded");
  if (isOpen === null) {
    if (event.key === "ArrowLeft") item.parentElement!.closest("li")!.querySelector<HTMLElement>(".name")!.focus();
  } else if ((isOpen === "true") !== (event.key === "ArrowRight")) entry.click();
}

interface ColumnProps {
  table: Table;
  column: TableColumn;
  /** Undefined if no row is stored. */
  storage?: ColumnStorage;
}

function ColumnItem({ table, column, storage }: ColumnProps) {
  const { name, type, isTimestamp, isKey } = column;
  const showMenu = (target: HTMLElement) => openMenu(target, columnActions(table, column));
  return (
    <li role="treeitem" class="item column" onContextMenu={menuOn(showMenu)}>
      <button
        type="button"
        class="name"
        tabIndex={-1}
        aria-haspopup="menu"
        onClick={(event) => showMenu(event.currentTarget)}
      >
        <span>{name}</span>
        <small>{type}{isTimestamp ? " · time" : ""}{isKey ? " · key" : ""}</small>
        {storage !== undefined && <small class="storage">{storageText(storage)}</small>}
      </button>
    </li>
  );
}

/** "1.2 MiB of 8.0 MiB · frame" */
function storageText({ bytes, rawBytes, encodings }: ColumnStorage): string {
  const size = bytes < rawBytes ? `${bytesText(bytes)} of ${bytesText(rawBytes)}` : bytesText(bytes);
  return [size, ...encodings.filter((name) => name !== "raw")].join(" · ");
}

function menuOn(show: (target: HTMLElement) => void): (event: MouseEvent) => void {
  return (event) => {
    event.preventDefault();
    show(event.currentTarget as HTMLElement);
  };
}
