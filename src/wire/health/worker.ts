/** The minimal server's thread. */
import { pinThread } from "./affinity.ts";
import { faultOf, type HealthServer, serveHealth } from "./server.ts";
import type { Certificate, Pem } from "../tls/mod.ts";
import type { FromThread, ToThread } from "./thread.ts";

const scope = self as unknown as {
  postMessage(message: FromThread): void;
  onmessage: ((event: MessageEvent<ToThread>) => void) | null;
};
const texts = new Map<number, { resolve(text: string): void; reject(error: Error): void }>();
let nextId = 0;
let server: HealthServer | undefined;
let certificate: Received | undefined;

scope.onmessage = async ({ data }) => {
  if (data.kind === "start") return await begin(data);
  if (data.kind === "metrics") {
    const waiting = texts.get(data.id);
    texts.delete(data.id);
    return data.text === undefined ? waiting?.reject(new Error(data.error)) : waiting?.resolve(data.text);
  }
  if (data.kind === "pem") return certificate?.set(data.pem);
  await server?.close();
  scope.postMessage({ kind: "closed" });
};

async function begin(start: ToThread & { kind: "start" }): Promise<void> {
  if (start.affinity !== null) {
    const fault = pinThread(start.affinity);
    if (fault !== undefined) {
      scope.postMessage({ kind: "warning", message: `http.min.worker.affinity is ignored: ${fault}` });
    }
  }
  const onError = (error: unknown) => {
    scope.postMessage({
      kind: "error",
      message: error instanceof Error ? error.stack ?? error.message : String(error),
    });
    if (start.haltOnError) scope.postMessage({ kind: "halted" });
  };
  addEventListener("unhandledrejection", (event) => {
    event.preventDefault();
    onError(event.reason);
  });
  addEventListener("error", (event) => {
    event.preventDefault();
    onError(event.error ?? event.message);
  });
  const askMain = () =>
    new Promise<string>((resolve, reject) => {
      const id = nextId++;
      texts.set(id, { resolve, reject });
      scope.postMessage({ kind: "metrics", id });
    });
  try {
    server = serveHealth({
      ...start.settings,
      certificate: certificate = start.pem && await Received.of(start.pem),
      fault: () => start.pessimistic ? faultOf(start.healthWords) : undefined,
      metricsText: start.hasMetrics ? askMain : undefined,
      onError,
      onAnswer: start.tellsAnswers ? (line) => scope.postMessage({ kind: "answer", line }) : undefined,
    });
    scope.postMessage({ kind: "listening", port: server.port });
  } catch (error) {
    const { message, code } = error as Error & { code?: string };
    scope.postMessage({ kind: "refused", message, code });
  }
}

/** The certificate as read by main. The TLS modules are loaded only if it is used. */
class Received implements Pick<Certificate, "secure"> {
  #context: ReturnType<Tls["contextOf"]>;

  private constructor(private readonly tls: Tls, pem: Pem) {
    this.#context = tls.contextOf(pem);
  }

  static async of(pem: Pem): Promise<Received> {
    return new Received(await import("../tls/mod.ts"), pem);
  }

  set(pem: Pem): void {
    this.#context = this.tls.contextOf(pem);
  }

  secure(...[connection, options]: Parameters<Certificate["secure"]>): ReturnType<Certificate["secure"]> {
    return this.tls.secure(connection, this.#context, options);
  }
}

type Tls = typeof import("../tls/mod.ts");
