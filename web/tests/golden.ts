/** The files in golden/, written by `python -m tests.web.golden`. */

import { readFileSync } from "node:fs";
import { parseJson, type Json, type JsonObject } from "../src/json";

export function golden<T>(name: string): T[] {
  return JSON.parse(readFileSync(new URL(`../golden/${name}.json`, import.meta.url), "utf-8")) as T[];
}

/** The same file with integers and decimal numbers told apart. */
export function strictGolden(name: string): JsonObject[] {
  return parseJson(readFileSync(new URL(`../golden/${name}.json`, import.meta.url), "utf-8")) as JsonObject[];
}

export type { Json, JsonObject };
