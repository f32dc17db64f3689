"""The aiohttp library."""
import asyncio, sys
import aiohttp

base, rows, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


def same(expected, found):
    assert expected == found, f"expected {expected}, found {found}"


async def lines():
    yield b"aio v=2i\n"
    yield b"aio v=3i\n"


async def main():
    async with aiohttp.ClientSession(base) as session:
        async def execute(query):
            async with session.get("/exec", params={"query": query}) as reply:
                return (await reply.json())["dataset"]

        same([[1]], await execute("select 1"))
        async with session.post("/exec", json={"query": "select $1", "parameters": [2]}) as reply:
            same([[2]], (await reply.json())["dataset"])
        for data in ["aio v=1i\n", lines()]:
            async with session.post("/write", data=data) as reply:
                same(204, reply.status)
        same([[3]], await execute("select count() from aio"))
        async with session.get("/exp", params={"query": f"select x from long_sequence({rows})"}) as reply:
            same(rows + 1, sum([1 async for _ in reply.content]))
        async with session.get("/exp", params={"query": "select x from long_sequence(100000000000)"}) as reply:
            await reply.content.readexactly(100_000)
        async with session.head("/settings") as reply:
            same(200, reply.status)
        same([[[n]] for n in range(100)], await asyncio.gather(*[execute(f"select {n}") for n in range(100)]))
        for n in range(count):
            same([[1]], await execute("select 1"))
    print("ok")


asyncio.run(main())
