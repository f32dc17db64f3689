"""QuestDB's Python client: for each line of the input, a configuration, it sends a row to `ticks` and prints the outcome."""
import sys

from questdb.ingress import IngressError, Sender, TimestampMicros

for line in sys.stdin:
    try:
        with Sender.from_conf(line.strip()) as sender:
            sender.row("ticks", columns={"price": 1.5}, at=TimestampMicros(1))
            sender.flush()
        print("ok", flush=True)
    except IngressError as error:
        print(" ".join(str(error).split()), flush=True)
