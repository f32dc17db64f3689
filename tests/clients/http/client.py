"""http.client of the standard library."""
import http.client, json, sys
from threading import Thread
from urllib.parse import quote, urlsplit

base, rows, requests = urlsplit(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])


def connect():
    return http.client.HTTPConnection(base.hostname, base.port)


def ask(connection, method, path, body=None, headers={}):
    connection.request(method, path, body, headers)
    reply = connection.getresponse()
    return reply.status, reply.read().decode()


def same(expected, found):
    assert expected == found, f"expected {expected}, found {found}"


def execute(connection, query):
    return ask(connection, "GET", "/exec?nm=true&query=" + quote(query))


one = (200, '{"dataset":[[1]],"count":1}')
connection = connect()
same(one, execute(connection, "select 1"))
body = json.dumps({"query": "select 1", "nm": True})
same(one, ask(connection, "POST", "/exec", body, {"Content-Type": "application/json"}))
same((204, ""), ask(connection, "POST", "/write", "py v=1i\n"))
same((204, ""), ask(connection, "POST", "/write", iter([b"py v=2i\n", b"py v=3i\n"]), {}))
same((200, '{"dataset":[[3]],"count":1}'), execute(connection, "select count() from py"))
connection.request("GET", "/exp?query=" + quote(f"select x from long_sequence({rows})"))
same(rows + 1, sum(1 for _ in connection.getresponse()))
aborted = connect()
aborted.request("GET", "/exp?query=" + quote("select x from long_sequence(100000000000)"))
aborted.getresponse().read(100_000)
aborted.close()
same((200, ""), ask(connection, "HEAD", "/settings"))
found = {}
threads = [Thread(target=lambda n=n: found.update({n: execute(connect(), f"select {n}")})) for n in range(100)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for n in range(100):
    same((200, '{"dataset":[[%d]],"count":1}' % n), found[n])
socket = connection.sock
for n in range(requests):
    same(one, execute(connection, "select 1"))
assert connection.sock is socket, "the connection was kept"
print("ok")
