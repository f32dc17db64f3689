"""The requests library."""
import sys
from concurrent.futures import ThreadPoolExecutor
import requests

base, rows, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
session = requests.Session()


def same(expected, found):
    assert expected == found, f"expected {expected}, found {found}"


def execute(query):
    return session.get(base + "/exec", params={"query": query, "nm": "true"}).json()["dataset"]


same([[1]], execute("select 1"))
same([[1]], session.post(base + "/exec", data={"query": "select 1"}).json()["dataset"])
same([[2]], session.post(base + "/exec", json={"query": "select $1", "parameters": [2]}).json()["dataset"])
same(204, session.post(base + "/write", data="rq v=1i\n").status_code)
same(204, session.post(base + "/write", data=iter([b"rq v=2i\n", b"rq v=3i\n"])).status_code)
same([[3]], execute("select count() from rq"))
with session.get(base + "/exp", params={"query": f"select x from long_sequence({rows})"}, stream=True) as reply:
    same(rows + 1, sum(chunk.count(b"\n") for chunk in reply.iter_content(65536)))
with requests.get(base + "/exp", params={"query": "select x from long_sequence(100000000000)"}, stream=True) as reply:
    next(reply.iter_content(100_000))
same(200, session.head(base + "/settings").status_code)
same("10\r\n", session.get(base + "/exp", params={"query": "select 10", "nm": "true"}, headers={"Range": "bytes=0-0"}).text)
with ThreadPoolExecutor(100) as pool:
    same([[[n]] for n in range(100)], list(pool.map(execute, [f"select {n}" for n in range(100)])))
for n in range(count):
    same([[1]], execute("select 1"))
print("ok")
