/**
 * Small answers are written by the system's own call instead of an operation of the runtime, which takes longer than the call. After an
 * answer, the thread waits busily for the next request of the same client and receives it in the same way: a request then takes one turn
 * of the event loop less. All other reads and writes are the runtime's.
 *
 * The runtime's operations stay right beside that. It takes a socket's readiness for a hint only: a read that finds nothing waits on.
 *
 * @see https://man7.org/linux/man-pages/man2/send.2.html
 * @see https://man7.org/linux/man-pages/man2/recv.2.html
 */
import { BusyWait } from "../engine/busy-wait.ts";
import type { ByteConnection, Sockets } from "../wire/byte-connection.ts";
import { endOfTurn } from "./busy-poll.ts";
import { type Libc, libc } from "./libc.ts";

const MSG_DONTWAIT = 0x40, MSG_NOSIGNAL = 0x4000;
/** Larger answers wait for their client anyway, and a thread that only writes would not return to its event loop. */
const WRITTEN_MAX = 16_384;
/** If more clients than this have been answered in a turn, requests of others are usually there already. */
const AWAITED_MAX = 4;

/** @param hasEvents true if the event loop has something to do */
export function directSockets(hasEvents: () => boolean, micros: number): Sockets | undefined {
  const system = libc();
  return system && new DirectSockets(system, hasEvents, micros);
}

class DirectSockets implements Sockets {
  readonly #wait: BusyWait;
  readonly #end: ReturnType<typeof endOfTurn>;
  #deferred: DeferredRead[] = [];

  constructor(readonly system: Libc, private readonly hasEvents: () => boolean, micros: number) {
    this.#wait = new BusyWait(micros);
    this.#end = endOfTurn(this.#wait, () => this.#look());
  }

  readonly onAnswered = (): void => this.#end.plan();

  direct(connection: Deno.Conn): ByteConnection {
    const descriptor = descriptorOf(connection);
    return descriptor === undefined ? connection : new DirectConnection(connection, descriptor, this);
  }

  /** True until the end of a turn in which a client has been answered. */
  get defers(): boolean {
    return this.#end.isPlanned;
  }

  defer(connection: DirectConnection, into: Uint8Array): Promise<number | null> {
    return new Promise((resolve) => this.#deferred.push(new DeferredRead(connection, into, resolve)));
  }

  #look(): void {
    const deferred = this.#deferred;
    this.#deferred = [];
    if (deferred.length > AWAITED_MAX) this.#wait.skip();
    else {
      this.#wait.look(() => {
        let hasCome = false;
        for (const read of deferred) if (read.receives()) hasCome = true;
        return hasCome || this.hasEvents();
      });
    }
    for (const read of deferred) read.end();
  }
}

/** A read that is handed to the runtime at the end of the turn, unless its bytes have come by then. */
class DeferredRead {
  #count = 0;

  constructor(
    private readonly connection: DirectConnection,
    private readonly into: Uint8Array,
    private readonly resolve: (count: number | null | Promise<number | null>) => void,
  ) {}

  receives(): boolean {
    this.#count = this.connection.receive(this.into);
    return this.#count > 0;
  }

  end(): void {
    this.resolve(this.#count > 0 ? this.#count : this.connection.readLater(this.into));
  }
}

class DirectConnection implements ByteConnection {
  readonly remoteAddr: Deno.Addr;
  readonly #system: Libc;

  constructor(
    private readonly connection: Deno.Conn,
    /** Undefined when it is closed: the system may use the number for another file. */
    private descriptor: number | undefined,
    private readonly sockets: DirectSockets,
  ) {
    this.remoteAddr = connection.remoteAddr;
    this.#system = sockets.system;
  }

  read(into: Uint8Array): Promise<number | null> {
    return this.sockets.defers ? this.sockets.defer(this, into) : this.connection.read(into);
  }

  readLater(into: Uint8Array): Promise<number | null> {
    return this.connection.read(into);
  }

  /** Not positive if nothing has come, at the end, and if the connection is broken, which the runtime's read then tells. */
  receive(into: Uint8Array): number {
    if (this.descriptor === undefined) return 0;
    return this.#system.recv(this.descriptor, into as Uint8Array<ArrayBuffer>, BigInt(into.length), MSG_DONTWAIT);
  }

  write(bytes: Uint8Array): number | Promise<number> {
    if (this.descriptor !== undefined && bytes.length <= WRITTEN_MAX) {
      const flags = MSG_DONTWAIT | MSG_NOSIGNAL;
      const count = this.#system.send(this.descriptor, bytes as Uint8Array<ArrayBuffer>, BigInt(bytes.length), flags);
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

/** Deno has no public name for the descriptor of a connection. Undefined if it is not found. */
function descriptorOf(connection: Deno.Conn): number | undefined {
  const symbol = Object.getOwnPropertySymbols(connection).find(({ description }) => description === "Deno.internal.fd");
  const descriptor = symbol && (connection as unknown as Record<symbol, unknown>)[symbol];
  return typeof descriptor === "number" && descriptor >= 0 ? descriptor : undefined;
}
