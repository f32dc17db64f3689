/**
 * Dashboards of the console, in the table `_dashboards`. Ownership and sharing are enforced here. Statements of panels
 * run with the viewer's rights, like any other statement of the viewer.
 */
import { randomUUID } from "node:crypto";
import type { Dashboard, DashboardHead, Dashboards, DashboardSave, Identity, Session } from "../api.ts";
import { SqlError, SQLSTATE } from "../errors.ts";
import { sameName } from "../types/names.ts";
import type { AccessControl } from "./access/control.ts";
import { ownChange, ownRows } from "./own-statements.ts";

export const DASHBOARDS_TABLE = "_dashboards";
const TABLE = DASHBOARDS_TABLE;
const MAKE = `create table if not exists ${TABLE} (
  id varchar, name varchar, owner varchar, owner_id varchar, shared_with varchar, version long, changed timestamp,
  definition varchar
)`;
const HEAD = "id, name, owner, owner_id, shared_with, version, changed";

const NAME_LENGTH_MAX = 200;
const DEFINITION_LENGTH_MAX = 262_144;
const SHARED_WITH_MAX = 100;
const OWNED_MAX = 500;
/** Represents all users in a list of names. */
const EVERYBODY = "*";

export interface DashboardOptions {
  access?: Pick<AccessControl, "rightsOf" | "sourcesOf">;
  /** A session of the server itself. */
  session(): Session;
  hasTable(): boolean;
}

/** A row of the table. */
interface Stored extends DashboardHead {
  ownerId: string;
}

export class StoredDashboards implements Dashboards {
  /** Changes run one after the other, so that no change is lost between reading and writing. */
  private changing: Promise<unknown> = Promise.resolve();

  constructor(private readonly options: DashboardOptions) {}

  async list(identity: Identity): Promise<DashboardHead[]> {
    const all = await this.stored();
    return all.filter((one) => this.maySee(identity, one))
      .map((one) => this.shown(identity, one))
      .sort((a, b) => a.name.localeCompare(b.name));
  }

  async read(identity: Identity, id: string): Promise<Dashboard | undefined> {
    const found = await this.find(identity, id);
    if (found === undefined) return undefined;
    const [row] = await this.rows(`select definition from ${TABLE} where id = $1`, [id]);
    // Another session may have deleted it meanwhile.
    return row && { ...this.shown(identity, found), definition: String(row[0]) };
  }

  save(identity: Identity, save: DashboardSave): Promise<DashboardHead> {
    return this.oneByOne(async () => {
      this.check(save);
      const { id, name, sharedWith, definition } = save;
      const names = JSON.stringify(sharedWith);
      if (id === undefined) {
        const owned = (await this.stored()).filter(({ ownerId }) => ownerId === idOf(identity)).length;
        if (owned >= OWNED_MAX) {
          throw limit(`${identity.name} already has ${OWNED_MAX} dashboards, the maximum for one user`);
        }
        await this.change(MAKE);
        const newId = randomUUID();
        const owner = identity.external?.fullName ?? identity.name;
        const values = [newId, name, owner, idOf(identity), names, definition];
        await this.change(`insert into ${TABLE} values ($1, $2, $3, $4, $5, 1, now(), $6)`, values);
        return this.shown(identity, (await this.find(identity, newId))!);
      }
      const before = await this.find(identity, id);
      if (before === undefined) throw unknown(id);
      if (!this.mayEdit(identity, before)) throw denied(identity, before);
      if (save.version !== before.version) {
        const message =
          `the dashboard was changed in the meantime: version ${save.version} was opened, ${before.version} is stored`;
        throw new SqlError(message, -1, SQLSTATE.serializationFailure);
      }
      await this.change(
        `update ${TABLE} set name = $2, shared_with = $3, version = version + 1, changed = now(), definition = $4 where id = $1`,
        [id, name, names, definition],
      );
      return this.shown(identity, (await this.find(identity, id))!);
    });
  }

  remove(identity: Identity, id: string): Promise<void> {
    return this.oneByOne(async () => {
      const found = await this.find(identity, id);
      if (found === undefined) throw unknown(id);
      if (!this.mayEdit(identity, found)) throw denied(identity, found);
      await this.change(`delete from ${TABLE} where id = $1`, [id]);
    });
  }

  private check({ name, definition, sharedWith }: DashboardSave): void {
    if (name.trim() === "" || name.length > NAME_LENGTH_MAX) {
      throw limit(
        `the name of a dashboard must have 1 to ${NAME_LENGTH_MAX} characters: found ${
          name.trim() === "" ? 0 : name.length
        }`,
      );
    }
    if (definition.length > DEFINITION_LENGTH_MAX) {
      throw limit(`a dashboard can have at most ${DEFINITION_LENGTH_MAX} characters: found ${definition.length}`);
    }
    if (sharedWith.length > SHARED_WITH_MAX) {
      throw limit(`a dashboard can be shared with at most ${SHARED_WITH_MAX} names: found ${sharedWith.length}`);
    }
  }

  private oneByOne<T>(change: () => Promise<T>): Promise<T> {
    const done = this.changing.then(change);
    this.changing = done.catch(() => {});
    return done;
  }

  private shown(identity: Identity, stored: Stored): DashboardHead {
    const canEdit = this.mayEdit(identity, stored);
    const { ownerId: _, ...head } = stored;
    // Only users who may edit the dashboard see with whom it is shared.
    return { ...head, canEdit, sharedWith: canEdit ? head.sharedWith : [] };
  }

  private mayEdit(identity: Identity, { ownerId }: Stored): boolean {
    const { access } = this.options;
    return access === undefined || ownerId === idOf(identity) || access.rightsOf(identity).isAdmin;
  }

  private maySee(identity: Identity, stored: Stored): boolean {
    return this.mayEdit(identity, stored) ||
      this.namesOf(identity).some((name) => stored.sharedWith.some((other) => sameName(name, other)));
  }

  /** Names of the user and of its groups. */
  private namesOf(identity: Identity): string[] {
    return [EVERYBODY, ...this.options.access!.sourcesOf(identity).map(({ name }) => name)];
  }

  private async find(identity: Identity, id: string): Promise<Stored | undefined> {
    const [found] = await this.stored(id);
    return found !== undefined && this.maySee(identity, found) ? found : undefined;
  }

  private async stored(id?: string): Promise<Stored[]> {
    if (!this.options.hasTable()) return [];
    const where = id === undefined ? "" : " where id = $1";
    const rows = await this.rows(`select ${HEAD} from ${TABLE}${where}`, id === undefined ? [] : [id]);
    return rows.map(([id, name, owner, ownerId, sharedWith, version, changed]) => ({
      id: String(id),
      name: String(name),
      owner: String(owner),
      ownerId: String(ownerId),
      sharedWith: namesIn(sharedWith),
      version: Number(version),
      changed: String(changed),
      canEdit: false,
    }));
  }

  private rows(sql: string, values: string[]): Promise<unknown[][]> {
    return ownRows(this.options.session(), sql, values);
  }

  private change(sql: string, values: string[] = []): Promise<void> {
    return ownChange(this.options.session(), sql, values);
  }
}

/** Identifies the owner. A user of the same name from another source, or created later, is another owner. */
function idOf({ name, external, id }: Identity): string {
  return external !== undefined ? `external:${name}` : `local:${id ?? name}`;
}

/** Validates the value, because the table can also be written by SQL. */
function namesIn(text: unknown): string[] {
  try {
    const names = JSON.parse(String(text));
    return Array.isArray(names) ? names.map(String) : [];
  } catch {
    return [];
  }
}

const limit = (message: string) => new SqlError(message, -1, SQLSTATE.programLimitExceeded);
const unknown = (id: string) =>
  new SqlError(`dashboard ${id} does not exist, or is not shared with you`, -1, SQLSTATE.undefinedObject);

function denied({ name }: Identity, { name: dashboard, owner }: DashboardHead): SqlError {
  const message = `${name} may not change the dashboard ${dashboard}, which belongs to ${owner}`;
  return new SqlError(message, -1, SQLSTATE.insufficientPrivilege);
}
