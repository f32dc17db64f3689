/** Who the user is, and what the user may do. */
import { ScrollTable } from "../app/scroll-table.tsx";
import { useEffect, useState } from "preact/hooks";
import { useModal } from "../app/modal.ts";
import { query } from "../server/client.ts";
import { closePanel } from "../store/panels.ts";
import { loadPermissions, permissions } from "./permissions.ts";
import { shownName, user } from "./session.ts";

export function AccountPanel() {
  const dialog = useModal();
  const [ways, setWays] = useState<readonly string[]>([]);
  useEffect(() => {
    loadPermissions();
    signInWays().then(setWays);
  }, []);
  return (
    <dialog class="dialog account" ref={dialog} aria-labelledby="account-title" onClose={closePanel}>
      <h2 id="account-title">{user.value && shownName(user.value)}</h2>
      <dl>
        <dt>User</dt>
        <dd>{user.value?.name}</dd>
        <dt>Signs in by</dt>
        <dd>{user.value?.isExternal ? "identity provider" : ways.join(", ")}</dd>
      </dl>
      <Permissions />
      <p class="buttons">
        <button type="button" class="main" onClick={closePanel}>Close</button>
      </p>
    </dialog>
  );
}

function Permissions() {
  const held = permissions.value;
  if (held === undefined) return <p>Access control is off: every user may do everything.</p>;
  if (held.length === 0) return <p>You have no permissions yet. An administrator can give you some.</p>;
  return (
    <ScrollTable label="Permissions" columns={["Permission", "On", "You may grant it"]}>
      {held.map(({ permission, table, column, canGrant }, at) => (
        <tr key={at}>
          <td>{permission}</td>
          <td>{table === null ? "everything" : column === null ? table : `${table}(${column})`}</td>
          <td>{canGrant ? "yes" : "no"}</td>
        </tr>
      ))}
    </ScrollTable>
  );
}

/** Empty if the server does not report it, as for external users. */
async function signInWays(): Promise<string[]> {
  const { rows } = await query("show user");
  return (rows?.dataset ?? []).filter(([, isEnabled]) => isEnabled === true).map(([way]) => String(way).toLowerCase());
}
