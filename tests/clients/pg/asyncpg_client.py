"""asyncpg: prepared statements in binary form, transactions, cursors, arrays, whose types it queries by WITH RECURSIVE."""

import asyncio
import sys
import uuid
from datetime import datetime

import asyncpg


async def main():
    connection = await asyncpg.connect(f"postgres://admin:quest@127.0.0.1:{sys.argv[1]}/qdb")
    insert = "insert into t (x, v, d, b, u, l, ts) values ($1, $2, $3, $4, $5, $6, $7)"
    number = uuid.UUID(int=7)
    rows = [(i, f"v{i}", i / 2, i == 2, number, 10**12 + i, datetime(2026, 1, i)) for i in (1, 2)]
    await connection.execute(insert, *rows[0])
    await connection.executemany(insert, rows[1:])
    stored = await connection.fetch("select x, v, d, b, u, l, ts from t order by ts")
    print("same", [tuple(row) for row in stored] == rows)
    try:
        async with connection.transaction():
            await connection.execute("insert into other values ($1)", 5)
            raise KeyError("undone")
    except KeyError:
        print("undone", await connection.fetch("select * from other"))
    async with connection.transaction():
        cursor = connection.cursor("select x from long_sequence(200)", prefetch=50)
        print("sum", sum([row[0] async for row in cursor]))
    statement = await connection.prepare("select $1::long + x y from long_sequence(3)")
    print("prepared", [row["y"] for row in await statement.fetch(10)], [a.type.name for a in statement.get_attributes()])
    await connection.execute("create table arrays (a double[], m double[][], n long)")
    values = [([1.5, -2.0], [[1.0, 2.0], [3.0, 4.0]], 1), ([], None, 2), (None, [[0.5]], 3)]
    await connection.executemany("insert into arrays values ($1, $2, $3)", values)
    stored = await connection.fetch("select a, m, n from arrays order by n")
    print("arrays", [tuple(row) for row in stored] == values)
    print("computed", await connection.fetchval("select $1::double[] * 2", [1.0, 2.5]))
    async with connection.transaction():
        print("cursor", [row["a"] async for row in connection.cursor("select a from arrays where n < 3 order by n")])
    await connection.close()


asyncio.run(main())
