/**
 * Waits until the event loop has handled all events that are there: sends a byte to itself, and waits for it with all other events. After
 * setImmediate() the event loop does not wait, and then it looked at sockets in every 60th turn only. A timer takes 1 to 2 ms, and a call
 * that another thread answers takes as long as that thread waits for a core.
 */

const BYTE = new Uint8Array(1);
/** A byte that takes longer is lost. */
const LOST_MS = 2_000;

interface Pair {
  from: Deno.TcpConn;
  to: Deno.TcpConn;
}

export class SelfEvents {
  private pair: Pair | undefined;
  private opening: Promise<void> | undefined;
  private isClosed = false;
  private readonly received = new Uint8Array(16);

  after(callback: () => void): void {
    const { pair } = this;
    if (pair === undefined) {
      this.opening ??= this.open();
      setTimeout(callback, 0);
      return;
    }
    let isCalled = false;
    const call = () => {
      if (isCalled) return;
      isCalled = true;
      clearTimeout(timer);
      callback();
    };
    // Statements wait for this, so a connection that the system has ended must not stop them.
    const lost = () => {
      if (this.pair === pair) this.renew(pair);
      call();
    };
    const timer = setTimeout(lost, LOST_MS);
    pair.to.read(this.received).then((count) => count === null ? lost() : call(), lost);
    pair.from.write(BYTE).catch(() => {});
  }

  /** Without loopback, timers are used. */
  private async open(): Promise<void> {
    try {
      const pair = await connected();
      if (this.isClosed) closePair(pair);
      else this.pair = pair;
    } catch {
      // Tried once.
    }
  }

  private renew(pair: Pair): void {
    closePair(pair);
    this.pair = undefined;
    this.opening = undefined;
  }

  close(): void {
    this.isClosed = true;
    if (this.pair !== undefined) closePair(this.pair);
    this.pair = undefined;
  }
}

/** Two ends of a connection within this process. */
async function connected(): Promise<Pair> {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const from = await Deno.connect({ hostname: "127.0.0.1", port: (listener.addr as Deno.NetAddr).port });
  for (;;) {
    const to = await listener.accept();
    if ((to.remoteAddr as Deno.NetAddr).port === (from.localAddr as Deno.NetAddr).port) {
      from.setNoDelay(true);
      return { from, to };
    }
    // Another process.
    to.close();
  }
}

function closePair({ from, to }: Pair): void {
  from.close();
  to.close();
}
