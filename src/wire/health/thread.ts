/**
 * Main's side of the minimal server's thread. The thread answers health requests by itself from a word in shared
 * memory, even while main is blocked. Only /metrics asks main.
 */
import { type Logger, shownText } from "../../log/mod.ts";
import type { Certificate, Pem } from "../tls/mod.ts";
import type { HealthOptions, HealthServer } from "./server.ts";

/** The settings that can be posted to the thread. */
export type ThreadSettings = Omit<HealthOptions, "fault" | "metricsText" | "onError" | "onAnswer" | "certificate">;

export interface ThreadStart {
  settings: ThreadSettings;
  certificate?: Certificate;
  healthWords: Int32Array;
  pessimistic: boolean;
  /** Core to run on. Null: any. */
  affinity: number | null;
  haltOnError: boolean;
  metricsText?: () => Promise<string>;
  log: Logger;
  onError(error: unknown): void;
}

export type ToThread =
  | {
    kind: "start";
    settings: ThreadSettings;
    pem?: Pem;
    healthWords: Int32Array;
    pessimistic: boolean;
    affinity: number | null;
    haltOnError: boolean;
    hasMetrics: boolean;
    tellsAnswers: boolean;
  }
  | { kind: "metrics"; id: number; text?: string; error?: string }
  /** Sends a new certificate. */
  | { kind: "pem"; pem: Pem }
  | { kind: "close" };

export type FromThread =
  | { kind: "listening"; port: number }
  | { kind: "refused"; message: string; code?: string }
  | { kind: "metrics"; id: number }
  | { kind: "error"; message: string }
  | { kind: "warning"; message: string }
  | { kind: "answer"; line: string }
  /** Sent after an error for which `haltOnError` ends the thread. */
  | { kind: "halted" }
  | { kind: "closed" };

export function startHealthThread(start: ThreadStart): Promise<HealthServer> {
  const { settings, certificate, healthWords, pessimistic, affinity, haltOnError, metricsText, log, onError } = start;
  const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module", name: "http-min-server" });
  const post = (message: ToThread) => worker.postMessage(message);
  return new Promise((resolve, reject) => {
    let closed = () => {};
    let hasEnded = false;
    const end = () => {
      hasEnded = true;
      worker.terminate();
      closed();
    };
    worker.onerror = (event) => {
      // Prevent the default, which would end the process together with the thread.
      event.preventDefault();
      onError(new Error(`the minimal server's thread has ended: ${event.message}`));
      end();
    };
    worker.onmessage = async ({ data }: MessageEvent<FromThread>) => {
      switch (data.kind) {
        case "listening":
          return resolve({
            port: data.port,
            close: () =>
              new Promise((done) => {
                if (hasEnded) return done();
                closed = done;
                post({ kind: "close" });
              }),
          });
        case "refused":
          worker.terminate();
          return reject(Object.assign(new Error(data.message), { code: data.code }));
        case "metrics":
          return await metricsText!().then(
            (text) => post({ kind: "metrics", id: data.id, text }),
            (error) => post({ kind: "metrics", id: data.id, error: String(error) }),
          );
        case "error":
          return onError(new Error(data.message));
        case "warning":
          return log.advisory(data.message);
        case "answer":
          return log.debug(shownText(data.line));
        case "halted":
          log.critical("the minimal server has ended: http.min.worker.haltOnError is set");
          return end();
        case "closed":
          return end();
      }
    };
    certificate?.onChange(() => post({ kind: "pem", pem: certificate.pem }));
    post({
      kind: "start",
      settings,
      pem: certificate?.pem,
      healthWords,
      pessimistic,
      affinity,
      haltOnError,
      hasMetrics: metricsText !== undefined,
      tellsAnswers: log.isDebug,
    });
  });
}
