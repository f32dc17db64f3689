"""psycopg. Arguments: port, authority, another authority."""
import sys

import psycopg

port, authority, other = sys.argv[1:]


def connect(more):
    return psycopg.connect(f"host=localhost port={port} user=admin password=quest dbname=qdb {more}", autocommit=True)


def refusal(more):
    try:
        connect(more).close()
    except psycopg.OperationalError as error:
        return str(error)
    raise AssertionError(f"connected with {more}")


verified = f"sslmode=verify-full sslrootcert={authority}"
# libpq supports direct negotiation since version 17.
for more in ["", "sslnegotiation=direct"] if psycopg.pq.version() >= 170000 else [""]:
    with connect(f"{verified} {more}") as connection:
        rows = connection.execute("select x, 'some text' from long_sequence(200000)").fetchall()
        assert sum(x for x, _ in rows) == 200000 * 200001 // 2
refusal(f"sslmode=verify-full sslrootcert={other}")
assert "pg.tls.required" in refusal("sslmode=disable")
print("ok")
