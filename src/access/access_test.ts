/**
 * Tests the rights that result from GRANT, REVOKE and membership. The expectations come from the documentation, not
 * from the code.
 */
import assert from "node:assert/strict";
import {
  AccessSnapshot,
  allOf,
  changesOf,
  decodePrincipal,
  encodePrincipal,
  type Grant,
  newPrincipal,
  type Permission,
  permissionOf,
  PERMISSIONS,
  type Principal,
  principalRecordKey,
  type RecordChange,
  RecordMap,
  Rights,
  type TableEvent,
  tokenHash,
  withGrant,
  withoutGrant,
} from "./mod.ts";

const TABLES = [
  { name: "trades", columns: [{ name: "ts" }, { name: "symbol" }, { name: "price" }] },
  { name: "orders", columns: [{ name: "ts" }, { name: "id" }] },
  { name: "fees", columns: [{ name: "ts" }] },
];

/** "SELECT", "SELECT on trades", "SELECT on trades(price)"; a `+` at the end is the grant option. */
function parse(text: string): Grant {
  const [, permission, table, column, option] = /^([A-Z ]+?)(?: on ([^+(]+))?(?:\((\w+)\))?(\+)?$/.exec(text)!;
  return { permission: permission as Permission, table, column, grantOption: option !== undefined };
}

function say({ permission, table, column, grantOption }: Grant): string {
  return `${permission}${table ? ` on ${table}` : ""}${column ? `(${column})` : ""}${grantOption ? "+" : ""}`;
}

const apply = (statements: string[]) =>
  statements.reduce<Grant[]>((grants, statement) => {
    const [verb, ...rest] = statement.split(" ");
    const grant = parse(rest.join(" "));
    return verb === "grant" ? withGrant(grants, grant) : withoutGrant(grants, grant, TABLES);
  }, []);

const outcomes: { title: string; after: string[]; shows: string[] }[] = [
  { title: "a grant is kept", after: ["grant SELECT on trades"], shows: ["SELECT on trades"] },
  { title: "granting again overwrites the grant option", after: ["grant HTTP+", "grant HTTP"], shows: ["HTTP"] },
  { title: "granting again can add the grant option", after: ["grant HTTP", "grant HTTP+"], shows: ["HTTP+"] },
  {
    title: "the database's grant replaces that of a table and a column",
    after: ["grant SELECT on trades", "grant SELECT on orders(id)", "grant SELECT"],
    shows: ["SELECT"],
  },
  {
    title: "a grant that the database's grant includes is omitted",
    after: ["grant SELECT", "grant SELECT on trades"],
    shows: ["SELECT"],
  },
  {
    title: "the table's grant replaces that of a column",
    after: ["grant SELECT on trades(price)", "grant SELECT on trades"],
    shows: ["SELECT on trades"],
  },
  {
    title: "a lower grant with the option is not redundant",
    after: ["grant SELECT", "grant SELECT on trades+"],
    shows: ["SELECT", "SELECT on trades+"],
  },
  { title: "names are case-insensitive", after: ["grant SELECT on Trades", "revoke SELECT on trades"], shows: [] },
  {
    title: "revoking a grant on all tables from one table keeps the others that exist",
    after: ["grant SELECT+", "revoke SELECT on trades"],
    shows: ["SELECT on orders+", "SELECT on fees+"],
  },
  {
    title: "revoking a table's grant from one column keeps the other columns",
    after: ["grant SELECT on trades", "revoke SELECT on trades(price)"],
    shows: ["SELECT on trades(ts)", "SELECT on trades(symbol)"],
  },
  {
    title: "revoking a grant on all tables from one column keeps other tables and the other columns",
    after: ["grant UPDATE", "revoke UPDATE on orders(id)"],
    shows: ["UPDATE on trades", "UPDATE on fees", "UPDATE on orders(ts)"],
  },
  {
    title: "revoking for all tables revokes grants on lower levels too",
    after: ["grant SELECT on trades", "grant SELECT on orders(id)", "revoke SELECT"],
    shows: [],
  },
  {
    title: "revoking from a table revokes its columns too",
    after: ["grant SELECT on trades(price)", "revoke SELECT on trades"],
    shows: [],
  },
  {
    title: "other permissions stay",
    after: ["grant SELECT on trades", "grant UPDATE on trades", "revoke SELECT on trades"],
    shows: ["UPDATE on trades"],
  },
  {
    title: "revoking a permission that is not held has no effect",
    after: ["grant HTTP", "revoke PGWIRE"],
    shows: ["HTTP"],
  },
  {
    title: "permissions on objects that do not exist yet can be granted",
    after: ["grant SELECT on later(x)"],
    shows: ["SELECT on later(x)"],
  },
];
for (const { title, after, shows } of outcomes) {
  Deno.test(`grants: ${title}`, () => assert.deepEqual(apply(after).map(say).sort(), shows.sort()));
}

const schemaOf = (name: string, ...columns: string[]) => ({
  name,
  timestampId: columns.indexOf("ts"),
  columns: columns.map((name, id) => ({ id, name })),
});
const TRADES = schemaOf("trades", "ts", "symbol", "price");

/** The columns on which SELECT is held. */
const readable: { title: string; grants: string[]; table?: typeof TRADES; columns: string[] | "all" }[] = [
  { title: "nothing", grants: [], columns: [] },
  { title: "another table", grants: ["SELECT on orders"], columns: [] },
  { title: "another permission", grants: ["UPDATE on trades", "INSERT", "HTTP"], columns: [] },
  { title: "the database", grants: ["SELECT"], columns: "all" },
  { title: "the table", grants: ["SELECT on TRADES"], columns: "all" },
  { title: "a column, which includes the timestamp", grants: ["SELECT on trades(price)"], columns: ["ts", "price"] },
  { title: "the timestamp alone", grants: ["SELECT on trades(ts)"], columns: ["ts"] },
  {
    title: "a column of a table without a timestamp",
    grants: ["SELECT on plain(a)"],
    table: schemaOf("plain", "a", "b"),
    columns: ["a"],
  },
  { title: "a column that does not exist", grants: ["SELECT on trades(none)"], columns: [] },
  { title: "everything as an administrator", grants: ["DATABASE ADMIN"], columns: "all" },
];
for (const { title, grants, table = TRADES, columns } of readable) {
  Deno.test(`rights: SELECT by ${title}`, () => {
    const found = new Rights(false, grants.map(parse)).on("SELECT", table);
    const names = found === "all" ? found : [...found].sort().map((id) => table.columns[id].name);
    assert.deepEqual(names, columns);
  });
}

Deno.test("rights: a table's grant includes later columns; grants on columns do not", () => {
  const wide = schemaOf("trades", "ts", "symbol", "price", "size");
  const onTable = new Rights(false, [parse("SELECT on trades")]);
  const onColumns = new Rights(false, ["ts", "symbol", "price"].map((name) => parse(`SELECT on trades(${name})`)));
  for (const rights of [onTable, onColumns]) rights.on("SELECT", TRADES);
  assert.equal(onTable.on("SELECT", wide), "all");
  assert.deepEqual(onColumns.on("SELECT", wide), new Set([0, 1, 2]));
});

const grantable: { held: string; target: string; may: boolean }[] = [
  { held: "SELECT", target: "SELECT on trades", may: false },
  { held: "SELECT+", target: "SELECT on trades", may: true },
  { held: "SELECT on trades+", target: "SELECT on trades(price)", may: true },
  { held: "SELECT on trades+", target: "SELECT", may: false },
  { held: "SELECT on trades+", target: "SELECT on orders", may: false },
  { held: "SELECT on trades(price)+", target: "SELECT on trades", may: false },
  { held: "UPDATE+", target: "SELECT on trades", may: false },
  { held: "DATABASE ADMIN", target: "SELECT", may: true },
];
for (const { held, target, may } of grantable) {
  Deno.test(`rights: a principal with ${held} ${may ? "can" : "cannot"} grant ${target}`, () => {
    assert.equal(new Rights(false, [parse(held)]).canGrant(parse(target)), may);
  });
}

function snapshotOf(...principals: Principal[]): AccessSnapshot {
  return new AccessSnapshot(
    1,
    RecordMap.of(principals.map((principal) => [principalRecordKey(principal.name), encodePrincipal(principal)])),
    "admin",
  );
}

const withGrants = (principal: Principal, ...grants: string[]): Principal => ({
  ...principal,
  grants: grants.map(parse),
});

Deno.test("users have their own rights and those of their groups, service accounts have their own, groups cannot act", () => {
  const snapshot = snapshotOf(
    { ...withGrants(newPrincipal("user", "alice"), "HTTP"), groups: ["readers", "gone"] },
    withGrants(newPrincipal("group", "readers"), "SELECT on trades"),
    withGrants(newPrincipal("service account", "app"), "INSERT on trades"),
  );
  const rights = snapshot.rightsOf("ALICE");
  assert.ok(rights.has("HTTP"));
  assert.equal(rights.on("SELECT", TRADES), "all");
  assert.equal(snapshot.rightsOf("app").on("INSERT", TRADES), "all");
  assert.equal(snapshot.rightsOf("app").on("SELECT", TRADES) === "all", false);
  assert.deepEqual(snapshot.rightsOf("readers").grants, []);
  assert.deepEqual(snapshot.rightsOf("nobody").grants, []);
  assert.ok(snapshot.rightsOf("admin").isAdmin);
});

Deno.test("a disabled user has no rights", () => {
  const alice = { ...withGrants(newPrincipal("user", "alice"), "HTTP"), isEnabled: false };
  assert.equal(snapshotOf(alice).rightsOf("alice").has("HTTP"), false);
});

Deno.test("equal grants of a user and a group are merged, with the grant option of either", () => {
  const alice = { ...withGrants(newPrincipal("user", "alice"), "SELECT on trades"), groups: ["g"] };
  const snapshot = snapshotOf(alice, withGrants(newPrincipal("group", "g"), "SELECT on Trades+", "HTTP"));
  assert.deepEqual(snapshot.grantsOf(alice).map(say).sort(), ["HTTP", "SELECT on Trades+"]);
});

Deno.test("a token is found by its hash until it is removed", () => {
  const token = { hash: tokenHash("qt1secret"), expiresAt: 5, ttlMs: 60_000, refreshes: false };
  const snapshot = snapshotOf({ ...newPrincipal("user", "alice"), tokens: [token] });
  assert.equal(snapshot.ofToken("qt1secret")?.principal.name, "alice");
  assert.equal(snapshot.ofToken("qt1other"), undefined);
  const after = snapshot.after([[principalRecordKey("alice"), null]]);
  assert.equal(after.ofToken("qt1secret"), undefined);
  assert.equal(after.version, 2);
});

Deno.test("groups are found by alias, members by group and service account, before and after changes", () => {
  const record = (principal: Principal): RecordChange => [
    principalRecordKey(principal.name),
    encodePrincipal(principal),
  ];
  const alice = {
    ...newPrincipal("user", "alice"),
    groups: ["Readers"],
    assumes: [{ account: "app", grantOption: false }],
  };
  const readers = { ...newPrincipal("group", "readers"), externalAlias: "CN=r" };
  const snapshot = snapshotOf(alice, readers);
  const found = (of: AccessSnapshot) => ({
    aliases: of.groupsByAlias(["CN=r", "CN=w", "CN=r"]).map(({ name }) => name),
    members: of.linkedTo("READERS").map(({ name }) => name),
    assumers: of.linkedTo("app").map(({ name }) => name),
  });
  assert.deepEqual(found(snapshot), { aliases: ["readers"], members: ["alice"], assumers: ["alice"] });
  const bob = { ...newPrincipal("user", "bob"), groups: ["readers"] };
  const writers = { ...newPrincipal("group", "writers"), externalAlias: "CN=w" };
  const after = snapshot.after([record(bob), record(writers), record({ ...readers, externalAlias: undefined })]);
  assert.deepEqual(found(after), { aliases: ["writers"], members: ["alice", "bob"], assumers: ["alice"] });
  const left = after.after([[principalRecordKey("writers"), null], record({ ...alice, groups: [], assumes: [] })]);
  assert.deepEqual(found(left), { aliases: [], members: ["bob"], assumers: [] });
});

Deno.test("rights are recomputed only for principals that a change affects", () => {
  const readers = withGrants(newPrincipal("group", "readers"), "HTTP");
  const snapshot = snapshotOf(
    { ...newPrincipal("user", "alice"), groups: ["readers"] },
    newPrincipal("user", "bob"),
    readers,
  );
  const alice = snapshot.rightsOf("alice"), bob = snapshot.rightsOf("bob");
  const changed = encodePrincipal(withGrants(readers, "PGWIRE"));
  const after = snapshot.after([[principalRecordKey("readers"), changed]]);
  assert.equal(after.rightsOf("bob"), bob);
  assert.deepEqual([alice.has("PGWIRE"), after.rightsOf("alice").has("PGWIRE")], [false, true]);
  assert.equal(snapshot.rightsOf("alice").has("PGWIRE"), false);
});

Deno.test("RecordMap: a change does not affect the earlier map, and equals a copied map", () => {
  const expected = new Map<string, string>();
  let records = RecordMap.of();
  let state = 1;
  const random = (below: number) => (state = (state * 48271) % 2147483647) % below;
  for (let round = 0; round < 200; round++) {
    const changes = Array.from({ length: random(50) }, (): RecordChange => [
      `principal/${random(3000)}`,
      random(3) === 0 ? null : String(round),
    ]);
    const before = records, copy = new Map(expected);
    for (const [key, text] of changes) {
      if (text === null) expected.delete(key);
      else expected.set(key, text);
    }
    records = records.with(changes);
    assert.deepEqual(new Map(before), copy);
    assert.deepEqual(new Map(records), expected);
    assert.equal(records.size, expected.size);
    for (const [key] of changes) assert.equal(records.get(key), expected.get(key));
  }
});

Deno.test("a principal's record is decoded as it was encoded", () => {
  const alice: Principal = {
    ...withGrants(newPrincipal("user", "Alice"), "HTTP+", "SELECT on trades", "UPDATE on trades(__proto__)"),
    isEnabled: false,
    verifier: { salt: "c2FsdA==", iterations: 3, storedKey: "a2V5", serverKey: "c2Vydg==" },
    tokens: [{ hash: "x", expiresAt: 1, ttlMs: 2, refreshes: true }],
    groups: ["g"],
    assumes: [{ account: "app", grantOption: true }],
  };
  assert.deepEqual(decodePrincipal(encodePrincipal(alice)), alice);
  const group: Principal = { ...newPrincipal("group", "g"), externalAlias: "CN=x" };
  assert.deepEqual(decodePrincipal(encodePrincipal(group)), group);
});

const events: { title: string; event: TableEvent; before: string[]; after: string[] }[] = [
  {
    title: "grants follow a table that is renamed",
    event: { kind: "tableRenamed", from: "trades", to: "deals" },
    before: ["SELECT on Trades+", "UPDATE on trades(price)", "SELECT on orders", "HTTP"],
    after: ["SELECT on deals+", "UPDATE on deals(price)", "SELECT on orders", "HTTP"],
  },
  {
    title: "grants follow a rename whatever the spelling of the name",
    event: { kind: "tableRenamed", from: "kw", to: "b" },
    before: ["SELECT on KW", "SELECT on \u212aw(a)"], // the second begins with the sign of Kelvin
    after: ["SELECT on b", "SELECT on b(a)"],
  },
  {
    title: "grants follow a rename from a name beyond ASCII",
    event: { kind: "tableRenamed", from: "zo\u00eb", to: "zoe" },
    before: ["SELECT on Zo\u0308e", "SELECT on ZOE\u0308"],
    after: ["SELECT on Zo\u0308e", "SELECT on zoe"],
  },
  {
    title: "earlier grants on the new name do not apply to the renamed table",
    event: { kind: "tableRenamed", from: "secrets", to: "open" },
    before: ["SELECT on open"],
    after: [],
  },
  {
    title: "grants follow a column that is renamed, and earlier grants on its new name end",
    event: { kind: "columnRenamed", table: "trades", from: "price", to: "cost" },
    before: ["SELECT on trades(price)", "UPDATE on trades(cost)", "SELECT on orders(price)"],
    after: ["SELECT on trades(cost)", "SELECT on orders(price)"],
  },
  {
    title: "CASCADE PERMISSIONS drops a table's grants",
    event: { kind: "permissionsDropped", table: "trades" },
    before: ["SELECT on trades", "SELECT on trades(price)", "SELECT"],
    after: ["SELECT"],
  },
];
for (const { title, event, before, after } of events) {
  Deno.test(`changes of tables: ${title}`, () => {
    const { records } = snapshotOf(withGrants(newPrincipal("user", "alice"), ...before));
    const changed = records.with(changesOf(records, event));
    const alice = new AccessSnapshot(1, changed, undefined).principal("alice")!;
    assert.deepEqual(alice.grants.map(say).sort(), after.sort());
  });
}

Deno.test("changes of tables: the creator of a table has all rights of its level, and can grant them", () => {
  const { records } = snapshotOf(newPrincipal("user", "alice"), newPrincipal("user", "bob"));
  const changes = changesOf(records, { kind: "tableCreated", table: "trades", creator: "alice" });
  assert.equal(changes.length, 1);
  const alice = new AccessSnapshot(1, records.with(changes), undefined).principal("alice")!;
  assert.deepEqual(alice.grants.map(say).sort(), allOf("table").map((name) => `${name} on trades+`).sort());
  const admin: TableEvent = { kind: "tableCreated", table: "t", creator: "admin" };
  assert.deepEqual(changesOf(records, admin), []);
});

Deno.test("changes of tables: the creator of a column has all rights of its level", () => {
  const { records } = snapshotOf(newPrincipal("user", "alice"));
  const event: TableEvent = { kind: "columnsAdded", table: "trades", columns: ["size"], creator: "alice" };
  const alice = new AccessSnapshot(1, records.with(changesOf(records, event)), undefined).principal("alice")!;
  assert.deepEqual(alice.grants.map(say).sort(), allOf("column").map((name) => `${name} on trades(size)+`).sort());
});

/** The numbers in the documentation. */
Deno.test("permissions: as documented, on the documented levels", () => {
  const levels = (name: string) => permissionOf(name)!.levels.join();
  assert.equal(PERMISSIONS.filter(({ levels }) => levels.includes("column")).length, 9);
  assert.equal(PERMISSIONS.filter(({ levels }) => levels.includes("table")).length, 34);
  assert.equal(levels("SELECT"), "database,table,column");
  assert.equal(levels("INSERT"), "database,table");
  assert.equal(levels("HTTP"), "database");
  assert.equal(permissionOf("OWNER"), undefined);
});
