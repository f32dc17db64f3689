/** The rows of an outcome, as a table. */
import type { Rows } from "../server/client.ts";

const NUMBERS = /^(BYTE|SHORT|INT|LONG|FLOAT|DOUBLE|DECIMAL.*|LONG256)$/;

function shown(value: unknown): string {
  return value !== null && typeof value === "object" ? JSON.stringify(value) : String(value);
}

export function Grid({ rows: { columns, dataset } }: { rows: Rows }) {
  const classOf = (at: number) => NUMBERS.test(columns[at].type) ? "number" : "";
  return (
    <div class="grid">
      <table>
        <thead>
          <tr>
            {columns.map(({ name, type }, at) => (
              <th key={at} class={classOf(at)} scope="col">
                {name}
                <small>{type}</small>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {dataset.map((row, index) => (
            <tr key={index}>
              {row.map((value, at) => (
                <td key={at} class={value === null ? `null ${classOf(at)}` : classOf(at)}>{shown(value)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
