/** The server's refusals because of a missing permission, and how the user can get it. */

export interface Denial {
  user: string;
  permission: string;
  /** A table, or a table and a column as `t(c)`. */
  on?: string;
}

/** Undefined if the message has another cause. */
export function denialOf(message: string): Denial | undefined {
  const [, user, permission, on] = /^Access denied for (.+) \[([A-Z ]+?)(?: on (.+))?\]$/.exec(message) ?? [];
  return user === undefined || permission === undefined ? undefined : { user, permission, on };
}

/** Describes who can grant the permission. */
export function giversOf({ permission, on }: Denial): string {
  const where = on === undefined ? "" : ` on ${on}`;
  return `An administrator can grant it to you, or a user who has ${permission}${where} with the grant option.`;
}

/** The statement that grants the permission. External users get permissions only through groups. */
export function grantFor({ user, permission, on }: Denial, isExternal: boolean): string {
  const place = on === undefined ? "" : ` ON ${on.replace(/^[^(]+|[^()]+(?=\)$)/g, quotedName)}`;
  return `GRANT ${permission}${place} TO ${isExternal ? "<one of your groups>" : quotedName(user)};`;
}

const quotedName = (name: string) => /^[A-Za-z_]\w*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`;
