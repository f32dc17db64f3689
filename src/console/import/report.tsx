/** The result of an import. */
import { countText } from "../results/summary.ts";
import type { ImportReport } from "../server/client.ts";

export function Report({ report: { error, table, imported, rejected, columns }, onClose }: {
  report: ImportReport;
  onClose(): void;
}) {
  return (
    <>
      {error !== undefined ? <p class="error" role="alert">{error}</p> : (
        <p role="status">
          {countText(imported)} imported into {table}
          {rejected > 0 && `, ${countText(rejected)} left out`}.
        </p>
      )}
      {columns.length > 0 && (
        <div class="preview" tabIndex={0} aria-label="Columns">
          <table>
            <thead>
              <tr>
                <th scope="col">Column</th>
                <th scope="col">Type</th>
                <th scope="col">Values that did not fit</th>
              </tr>
            </thead>
            <tbody>
              {columns.map(({ name, type, errors }) => (
                <tr key={name} class={errors > 0 ? "error" : ""}>
                  <td>{name}</td>
                  <td>{type}</td>
                  <td>{errors}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <p class="buttons">
        <button type="button" class="main" onClick={onClose}>Close</button>
      </p>
    </>
  );
}
