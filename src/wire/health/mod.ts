export { type HealthOptions, type HealthServer, serveHealth } from "./server.ts";
