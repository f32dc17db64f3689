/**
 * Small answers are written by the system's own call instead of an operation of the runtime, which takes longer than the call. After an
 * answer, the thread waits busily for the next request of the same client and receives it in the same way: a request then takes one turn
 * of the event loop less. All other reads and writes are the runtime's.
 *
 * The runtime's operations work beside that as before, because it takes a socket's readiness for a hint only: its read waits on if it finds
 * nothing.
 *
 * @see https://man7.org/linux/man-pages/man2/send.2.html
 * @see https://man7.org/linux/man-pages/man2/recv.2.html
 */
import type { ByteConnection, Sockets } from "../wire/byte-connection.ts";
import type { AwaitedRead, BusyPoll } from "./busy-poll.ts";
import { type Libc, libc } from "./libc.ts";

const MSG_DONTWAIT = 0x40, MSG_NOSIGNAL = 0x4000;
/** Larger answers wait for their client anyway, and a thread that only writes would not return to its event loop. */
const WRITTEN_MAX = 16_384;

/** Undefined if the system is not Linux with glibc. */
export function directSockets(poll: BusyPoll): Sockets | undefined {
  const system = libc();
  return system && {
    onAnswered: poll.expectRequest,
    direct(connection) {
      const descriptor = descriptorOf(connection);
      if (descriptor === undefined) return connection;
      poll.watchClient(descriptor);
      return new DirectConnection(connection, descriptor, system, poll);
    },
  };
}

class DirectConnection implements ByteConnection {
  readonly remoteAddr: Deno.Addr;

  constructor(
    readonly connection: Deno.Conn,
    /** Undefined when it is closed: the system may use the number for another file. */
    private descriptor: number | undefined,
    private readonly system: Libc,
    private readonly poll: BusyPoll,
  ) {
    this.remoteAddr = connection.remoteAddr;
  }

  read(into: Uint8Array): Promise<number | null> {
    const { poll } = this;
    if (poll.countClient()) {
      return new Promise((resolve) => poll.awaitRequest(new DirectRead(this, into, resolve)));
    }
    return poll.needsEvents ? this.readWithEvents(into) : this.connection.read(into);
  }

  private async readWithEvents(into: Uint8Array): Promise<number | null> {
    const count = await this.connection.read(into);
    this.poll.hadEvents();
    return count;
  }

  /** Not positive if nothing has come, at the end, and if the connection is broken, which the runtime's read then tells. */
  receive(into: Uint8Array): number {
    if (this.descriptor === undefined) return 0;
    return this.system.recv(this.descriptor, into as Uint8Array<ArrayBuffer>, BigInt(into.length), MSG_DONTWAIT);
  }

  write(bytes: Uint8Array): number | Promise<number> {
    if (this.descriptor !== undefined && bytes.length <= WRITTEN_MAX) {
      const flags = MSG_DONTWAIT | MSG_NOSIGNAL;
      const count = this.system.send(this.descriptor, bytes as Uint8Array<ArrayBuffer>, BigInt(bytes.length), flags);
      if (count > 0) return count;
    }
    return this.connection.write(bytes);
  }

  close(): void {
    this.descriptor = undefined;
    this.connection.close();
  }

  closeWrite(): Promise<void> {
    return this.connection.closeWrite();
  }
}

/** A read that is handed to the runtime at the end of the turn, unless its bytes have come by then. */
class DirectRead implements AwaitedRead {
  #count = 0;

  constructor(
    private readonly from: DirectConnection,
    private readonly into: Uint8Array,
    private readonly resolve: (count: number | null | Promise<number | null>) => void,
  ) {}

  hasCome(): boolean {
    this.#count = this.from.receive(this.into);
    return this.#count > 0;
  }

  end(): void {
    this.resolve(this.#count > 0 ? this.#count : this.from.connection.read(this.into));
  }
}

/** Deno has no public name for the descriptor of a connection. Undefined if it is not found. */
function descriptorOf(connection: Deno.Conn): number | undefined {
  const symbol = Object.getOwnPropertySymbols(connection).find(({ description }) => description === "Deno.internal.fd");
  const descriptor = symbol && (connection as unknown as Record<symbol, unknown>)[symbol];
  return typeof descriptor === "number" && descriptor >= 0 ? descriptor : undefined;
}
