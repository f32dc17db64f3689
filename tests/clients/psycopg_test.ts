/** psycopg in its default mode, which begins a transaction before every statement, if a Python has it. */
import assert from "node:assert/strict";
import { pythonWithDriver } from "../programs.ts";
import { startServer } from "../server.ts";

const python = pythonWithDriver();
if (python === undefined) console.log("skipped: psycopg: no Python has it");

const SCRIPT = `
import psycopg, sys
from psycopg import errors

port = sys.argv[1]

def connect(**more):
    return psycopg.connect(f"host=127.0.0.1 port={port} user=admin password=quest dbname=qdb", **more)

def rows(connection, query):
    return [tuple(row) for row in connection.execute(query)]

ours, other = connect(), connect(autocommit=True)
with ours.cursor() as cursor:
    cursor.execute("create table t (name varchar, n int, ts timestamp) timestamp(ts) partition by day")
    cursor.executemany("insert into t values (%s, %s, %s)", [("a", 1, "2024-01-01"), ("b", 2, "2024-01-02"), ("c", 3, "2024-01-03")])
    cursor.execute("update t set n = n * 10 where name <> %s", ("a",))
    print(cursor.rowcount)
    cursor.execute("delete from t where name = %s", ("c",))
    print(cursor.rowcount)
    print(cursor.execute("select name, n from t").fetchall())
try:
    other.execute("select * from t")
except errors.UndefinedTable:
    print("not seen")
ours.commit()
print(rows(other, "select name, n from t"))

ours.execute("update t set n = 0")
ours.execute("insert into t values ('x', 9, '2024-01-04')")
ours.execute("create table u (n int)")
ours.rollback()
print(rows(ours, "select name, n from t"))
ours.commit()

# with connection.transaction(): savepoints inside of one another
with ours.transaction():
    ours.execute("insert into t values ('k', 5, '2024-01-05')")
    try:
        with ours.transaction():
            ours.execute("delete from t")
            raise ValueError
    except ValueError:
        pass
    try:
        with ours.transaction():
            ours.execute("select * from nobody")
    except errors.UndefinedTable:
        print("undone")
    with ours.transaction():
        ours.execute("update t set n = 6 where name = 'k'")
print(rows(other, "select name, n from t"))

# A pipeline up to its Sync is one transaction.
try:
    with other.pipeline():
        other.execute("delete from t")
        other.execute("insert into t values ('p', 1, '2024-02-01')")
        other.execute("select 1 / n from nobody")
except errors.UndefinedTable:
    print("undone")
print(rows(other, "select name, n from t"))
with other.pipeline():
    other.execute("delete from t where name = 'a'")
    other.execute("insert into t values ('p', 1, '2024-02-01')")
    other.execute("update t set n = 2 where name = 'p'")
    cursor = other.execute("select name, n from t")
print(cursor.fetchall())

# Of two that change the same row, the second one has to try again.
third = connect()
for connection in (ours, third):
    connection.execute("update t set n = n + 1 where name = 'p'")
ours.commit()
try:
    third.commit()
except errors.SerializationFailure:
    print("again")
third.rollback()
print(rows(other, "select n from t where name = 'p'"))
ours.execute("delete from t")
ours.close()
print(rows(other, "select count() from t"))
`;

Deno.test({ name: "psycopg in its default mode", ignore: python === undefined }, async () => {
  await using server = await startServer();
  const { stdout, stderr } = await new Deno.Command(python!, { args: ["-c", SCRIPT, String(server.pgPort)] }).output();
  const told = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
  assert.deepEqual(told.trimEnd().split("\n"), [
    "2",
    "1",
    "[('a', 1), ('b', 20)]",
    "not seen",
    "[('a', 1), ('b', 20)]",
    "[('a', 1), ('b', 20)]",
    "undone",
    "[('a', 1), ('b', 20), ('k', 6)]",
    "undone",
    "[('a', 1), ('b', 20), ('k', 6)]",
    "[('b', 20), ('k', 6), ('p', 2)]",
    "again",
    "[(3,)]",
    "[(3,)]",
  ]);
});
