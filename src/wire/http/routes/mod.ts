/** All routes, in the order of the manual. A new one is a file in this folder and its name here. */
import type { Route } from "../contract.ts";
import { assets } from "./assets.ts";
import { chk } from "./chk.ts";
import { csvForm } from "./csv-form.ts";
import { dashboards } from "./dashboards.ts";
import { exec } from "./exec.ts";
import { exp } from "./exp.ts";
import { imp } from "./imp.ts";
import { language } from "./language.ts";
import { page } from "./page.ts";
import { ping } from "./ping.ts";
import { results } from "./results.ts";
import { settings } from "./settings.ts";
import { uploads } from "./uploads.ts";
import { validate } from "./validate.ts";
import { warnings } from "./warnings.ts";
import { write } from "./write.ts";

export const ROUTES: readonly Route[] = [
  exec,
  validate,
  results,
  exp,
  imp,
  csvForm,
  uploads,
  write,
  ping,
  chk,
  settings,
  warnings,
  language,
  dashboards,
  page,
  assets,
];
