/** A server with access control, and clients of each wire that authenticate. */
import { Buffer } from "node:buffer";
import pg from "pg";
import { type ExecReply, startServer, type TestServer } from "../server.ts";
import { pgClient } from "../pg-client.ts";

export const ADMIN = { name: "admin", password: "root's password" };

/** Few iterations, because each sign-in runs a derivation. */
const ITERATIONS = "4096";

export interface Credentials {
  name: string;
  password: string;
}

export interface HttpAnswer {
  status: number;
  headers: Headers;
  text: string;
}

export interface ProtectedServer extends TestServer {
  /** Requests a path, with an Authorization header if given. */
  request(path: string, authorization?: string, init?: RequestInit): Promise<HttpAnswer>;
  /** /exec with Basic authentication. */
  sql(text: string, as?: Credentials): Promise<ExecReply & { status: number }>;
  /** Runs statements as the administrator; they must succeed. */
  set(...statements: string[]): Promise<void>;
  /** /write */
  lines(text: string, as: Credentials): Promise<HttpAnswer>;
  pg(as: Credentials, more?: pg.ClientConfig): Promise<pg.Client>;
}

export const basic = ({ name, password }: Credentials) =>
  `Basic ${Buffer.from(`${name}:${password}`).toString("base64")}`;

export async function startProtected(
  env: Record<string, string> = {},
  options: Parameters<typeof startServer>[0] = {},
): Promise<ProtectedServer> {
  const server = await startServer({
    ...options,
    authorization: basic(ADMIN),
    env: {
      SVC_ACL_ENABLED: "true",
      SVC_ACL_ADMIN_PASSWORD: ADMIN.password,
      SVC_ACL_PASSWORD_HASH_ITERATION_COUNT: ITERATIONS,
      ...env,
    },
  });
  const request = async (path: string, authorization?: string, init: RequestInit = {}): Promise<HttpAnswer> => {
    const headers = {
      ...init.headers as Record<string, string>,
      ...authorization === undefined ? {} : { authorization },
    };
    const reply = await fetch(`${server.http}${path}`, { ...init, headers });
    return { status: reply.status, headers: reply.headers, text: await reply.text() };
  };
  const sql = async (text: string, as: Credentials = ADMIN) => {
    const { status, text: body } = await request(`/exec?${new URLSearchParams({ query: text })}`, basic(as));
    return { status, ...body.startsWith("{") ? JSON.parse(body) : { error: body } };
  };
  return Object.assign(server, {
    request,
    sql,
    async set(...statements: string[]) {
      for (const statement of statements) {
        const { error } = await sql(statement);
        if (error !== undefined) throw new Error(`${statement}: ${error}`);
      }
    },
    lines: (text: string, as: Credentials) => request("/write", basic(as), { method: "POST", body: text }),
    async pg({ name, password }: Credentials, more: pg.ClientConfig = {}) {
      const client = pgClient(server, { user: name, password, ...more });
      client.on("error", () => {});
      await client.connect();
      return client;
    },
  });
}

/** Steps that share a server. Each finds it without tables and principals. */
export function testSteps(name: string, steps: Record<string, (server: ProtectedServer) => Promise<void>>): void {
  Deno.test(name, async (t) => {
    await using server = await startProtected();
    for (const [title, step] of Object.entries(steps)) {
      await t.step(title, () => step(server));
      await server.set("drop all tables", ...await drops(server));
    }
  });
}

async function drops(server: ProtectedServer): Promise<string[]> {
  const kinds = [["users", "user"], ["groups", "group"], ["service accounts", "service account"]];
  const all = await Promise.all(kinds.map(async ([plural, kind]) => {
    const names = ((await server.sql(`show ${plural}`)).dataset ?? []).map(([name]) => String(name));
    return names.filter((name) => name !== ADMIN.name).map((name) => `drop ${kind} ${name}`);
  }));
  return all.flat();
}
