/** The columns of a file with their names and types in the table. */
import { ScrollTable } from "../app/scroll-table.tsx";
import { language } from "../store/schema.ts";
import type { Mapping } from "./mapping.ts";

interface Props {
  mappings: readonly Mapping[];
  /** Of each column, as texts. */
  firstValues(at: number): readonly string[];
  /** The types of the table apply. */
  hasTypes?: boolean;
  onChange(mappings: readonly Mapping[]): void;
}

export function MappingTable({ mappings, firstValues, hasTypes, onChange }: Props) {
  const change = (at: number, news: Partial<Mapping>) =>
    onChange(mappings.map((mapping, index) => index === at ? { ...mapping, ...news } : mapping));
  return (
    <ScrollTable
      label="Columns"
      kind="preview mapping"
      columns={["Column", "Found", "Name in the table", "Type in the table", "First rows"]}
    >
      {mappings.map(({ source, found, name, type, isIncluded }, at) => (
        <tr key={`${at} ${source}`}>
          <td>
            <label class="check">
              <input
                type="checkbox"
                checked={isIncluded}
                onChange={(event) => change(at, { isIncluded: event.currentTarget.checked })}
              />
              {source}
            </label>
          </td>
          <td>{found}</td>
          <td>
            <input
              aria-label={`Name of ${source} in the table`}
              value={name}
              disabled={!isIncluded}
              required
              onInput={(event) => change(at, { name: event.currentTarget.value })}
            />
          </td>
          <td>
            {hasTypes ? "that of the table" : (
              <select
                aria-label={`Type of ${source} in the table`}
                disabled={!isIncluded}
                onChange={(event) => change(at, { type: event.currentTarget.value })}
              >
                {[...new Set([found, ...language.value.types])].map((one) => (
                  <option key={one} selected={one === type}>{one}</option>
                ))}
              </select>
            )}
          </td>
          <td class="values">{firstValues(at).map((text) => text.slice(0, 40)).join(", ")}</td>
        </tr>
      ))}
    </ScrollTable>
  );
}
