"""QuestDB's Python client. Arguments: ports of HTTP and of lines over TCP, authority, another authority."""
import sys

from questdb.ingress import IngressError, Sender, TimestampNanos

http, tcp, authority, other = sys.argv[1:]


def send(configuration):
    with Sender.from_conf(configuration) as sender:
        for k in range(1, 10001):
            sender.row("python_lines", symbols={"wire": configuration[:5]}, columns={"k": k}, at=TimestampNanos(k * 1000))
        sender.flush()


send(f"https::addr=localhost:{http};tls_roots={authority};")
send(f"tcps::addr=localhost:{tcp};tls_roots={authority};protocol_version=2;")
for configuration in [f"https::addr=localhost:{http};", f"tcps::addr=localhost:{tcp};protocol_version=2;"]:
    try:
        send(f"{configuration}tls_roots={other};retry_timeout=0;" if "https" in configuration else f"{configuration}tls_roots={other};")
    except IngressError:
        continue
    raise AssertionError(f"{configuration} was taken with another authority")
print("ok")
