// One way to the server: JSON, the session's cookie, a token against forged requests, and problems in three lines.

import { cleanDeep } from "../lib/clean";
import { takeFirst } from "./first";

/** An error of the server, or of the connection to it. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly title: string,
    readonly detail: string,
    readonly hint: string,
    readonly body: Record<string, unknown> = {},
  ) {
    super(title);
  }
  /** No answer: the server is unreachable; the request may be fine. */
  get offline(): boolean {
    return this.status === 0;
  }
}

let csrf = "";
let onLoggedOut: () => void = () => {};

/** The token that unsafe requests carry, from `/me`. */
export function setCsrf(token: string): void {
  csrf = token;
}

/** Called when the server answers that the session isn't logged in. */
export function whenLoggedOut(call: () => void): void {
  onLoggedOut = call;
}

export interface Answer<T> {
  body: T;
  etag: string | null;
  status: number;
}

interface Options {
  method?: "GET" | "POST" | "PUT" | "DELETE";
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** Texts stay byte by byte: they are edited, or drawn by something that cleans them itself. */
  raw?: boolean;
}

const BASE = "/api/v1";

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

async function problemOf(response: Response): Promise<Problem> {
  const body = cleanDeep(await response.json().catch(() => ({}))) as Record<string, unknown>;
  const title = text(body.title) || `The server answered ${response.status}`;
  return new Problem(response.status, title, text(body.detail), text(body.hint), body);
}

/** One request; throws a {@link Problem}. */
export async function request<T>(path: string, options: Options = {}): Promise<Answer<T>> {
  const method = options.method ?? "GET";
  const headers: Record<string, string> = { accept: "application/json", ...options.headers };
  if (options.body !== undefined) headers["content-type"] = "application/json";
  if (method !== "GET" && csrf) headers["x-ralph-csrf"] = csrf;
  let response: Response;
  try {
    response = await ((method === "GET" ? takeFirst(path) : undefined) ?? fetch(BASE + path, {
      method,
      headers,
      credentials: "same-origin",
      body: options.body === undefined ? null : JSON.stringify(options.body),
      signal: options.signal ?? null,
    }));
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Problem(0, "The server does not answer", "The connection was refused or lost.", "Your runs continue. The page reconnects automatically.");
  }
  if (response.status === 401 && path !== "/login") onLoggedOut();
  if (!response.ok) throw await problemOf(response);
  const body = response.status === 204 || response.status === 202 ? await response.json().catch(() => null) : await response.json();
  return { body: (options.raw ? body : cleanDeep(body)) as T, etag: response.headers.get("etag"), status: response.status };
}

/** The body alone. */
export async function get<T>(path: string, signal?: AbortSignal, raw = false): Promise<T> {
  return (await request<T>(path, signal ? { signal, raw } : { raw })).body;
}

/** A file as text, for readers that clean it themselves. */
export async function plainText(path: string): Promise<string> {
  const response = await fetch(BASE + path, { credentials: "same-origin" }).catch(() => null);
  if (!response) throw new Problem(0, "The server does not answer", "", "");
  if (!response.ok) throw await problemOf(response);
  return response.text();
}

/** A query string of what is set. */
export function query(values: Record<string, string | number | boolean | null | undefined>): string {
  const out = new URLSearchParams();
  for (const [key, value] of Object.entries(values)) {
    if (value !== null && value !== undefined && value !== "" && value !== false) out.set(key, String(value));
  }
  const search = out.toString();
  return search ? `?${search}` : "";
}

/** Turns any error into a problem with a title. */
export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  return new Problem(-1, "The page failed", error instanceof Error ? error.message : String(error), "Reload the page.");
}
