/** The user's name in the head of the page, with a menu of the account. */
import { action } from "../actions/actions.ts";
import { MenuButton } from "../app/menu.tsx";
import { serverSettings, shownName, user } from "./session.ts";

export function AccountMenu() {
  if (!serverSettings.value.isProtected || user.value === undefined) return null;
  const items = ["account", "sign-out"].map((id) => action(id));
  return <MenuButton text={shownName(user.value)} items={items} />;
}
