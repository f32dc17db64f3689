/** Dashboards in the server. */
import { UNREACHABLE } from "./client.ts";
import { request } from "./request.ts";

export interface DashboardHead {
  id: string;
  name: string;
  owner: string;
  /** Users and groups; `*` means everybody. Only visible to users who may change it. */
  sharedWith: string[];
  version: number;
  changed: string;
  canEdit: boolean;
}

export interface StoredDashboard extends DashboardHead {
  definition: string;
}

export interface DashboardSave {
  id?: string;
  version?: number;
  name: string;
  sharedWith: readonly string[];
  definition: string;
}

/** `status` 0: the server cannot be reached. */
export interface Refused {
  error: string;
  status: number;
}

const PATH = "api/v1/dashboards";
const withId = (id: string) => `${PATH}?${new URLSearchParams({ id })}`;

export const listDashboards = () => answerOf<{ dashboards: DashboardHead[] }>(PATH);
export const readDashboard = (id: string) => answerOf<StoredDashboard>(withId(id));
export const removeDashboard = (id: string) => answerOf<Record<never, never>>(withId(id), { method: "DELETE" });

export function saveDashboard(save: DashboardSave): Promise<DashboardHead | Refused> {
  const headers = { "content-type": "application/json" };
  return answerOf<DashboardHead>(PATH, { method: "POST", headers, body: JSON.stringify(save) });
}

async function answerOf<T>(path: string, options?: Parameters<typeof request>[1]): Promise<T | Refused> {
  try {
    const reply = await request(path, options), text = await reply.text();
    const body = text.startsWith("{") ? JSON.parse(text) : { error: text.trim() };
    return reply.ok ? body : { error: body.error ?? reply.statusText, status: reply.status };
  } catch {
    return { error: UNREACHABLE, status: 0 };
  }
}
