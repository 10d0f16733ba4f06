// The URL holds the page, its tab and its filters.

import { useSyncExternalStore } from "react";

export type Tab =
  | "overview" | "timeline" | "logs" | "task" | "rules" | "diff" | "diagnostics" | "sandbox" | "charts";
export const TABS: { id: Tab; label: string }[] = [
  { id: "overview", label: "Overview" },
  { id: "timeline", label: "Timeline" },
  { id: "logs", label: "Logs" },
  { id: "task", label: "Task" },
  { id: "rules", label: "Guardrails" },
  { id: "diff", label: "Diff" },
  { id: "diagnostics", label: "Diagnostics" },
  { id: "sandbox", label: "Sandbox" },
  { id: "charts", label: "Charts" },
];

export type SettingsPage = "browser" | "people" | "secrets" | "audit" | "workers";

export type Route =
  | { page: "runs"; query: URLSearchParams }
  | { page: "board" }
  | { page: "new" }
  | { page: "run"; id: string; tab: Tab; query: URLSearchParams }
  | { page: "race"; id: string }
  | { page: "costs"; query: URLSearchParams }
  | { page: "settings"; sub: SettingsPage }
  | { page: "lost"; path: string };

/** Reads an address. */
export function parse(path: string, search: string): Route {
  const parts = path.split("/").filter(Boolean).map(decoded);
  const query = new URLSearchParams(search);
  const [first, second, third] = parts;
  if (first === undefined || (first === "runs" && second === undefined)) return { page: "runs", query };
  if (first === "board" && second === undefined) return { page: "board" };
  if (first === "new" && second === undefined) return { page: "new" };
  if (first === "costs" && second === undefined) return { page: "costs", query };
  if (first === "settings") {
    const sub = second ?? "browser";
    if (sub === "browser" || sub === "people" || sub === "secrets" || sub === "audit" || sub === "workers") return { page: "settings", sub };
  }
  if (first === "races" && second !== undefined && third === undefined) return { page: "race", id: second };
  if (first === "runs" && second !== undefined) {
    const tab = third ?? "overview";
    const known = TABS.find((t) => t.id === tab);
    if (known) return { page: "run", id: second, tab: known.id, query };
  }
  return { page: "lost", path };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The address of a tab of a run. */
export function runPath(id: string, tab: Tab = "overview", query?: Record<string, string>): string {
  const base = `/runs/${encodeURIComponent(id)}${tab === "overview" ? "" : `/${tab}`}`;
  const search = query ? new URLSearchParams(query).toString() : "";
  return search ? `${base}?${search}` : base;
}

/** The URL of a run's race. */
export function racePath(id: string): string {
  return `/races/${encodeURIComponent(id)}`;
}

type Listener = () => void;
const listeners = new Set<Listener>();
/** Asked before leaving a page with unsaved text. */
const guards = new Set<() => boolean>();
let current: { href: string; route: Route } | null = null;

function snapshot(): Route {
  const href = location.pathname + location.search;
  if (current?.href !== href) current = { href, route: parse(location.pathname, location.search) };
  return current.route;
}

function tell(): void {
  listeners.forEach((listener) => listener());
}

/** Goes to an address of this page. */
export function go(href: string, how: "push" | "replace" = "push"): void {
  if (href === location.pathname + location.search) return;
  const leaves = href.split("?")[0] !== location.pathname;
  if (leaves && [...guards].some((may) => !may())) return;
  if (how === "push") history.pushState(null, "", href);
  else history.replaceState(null, "", href);
  tell();
  if (leaves && how === "push") window.scrollTo(0, 0);
}

/** Changes a part of the query and stays. */
export function setQuery(change: Record<string, string | null>): void {
  const query = new URLSearchParams(location.search);
  for (const [key, value] of Object.entries(change)) {
    if (value === null || value === "") query.delete(key);
    else query.set(key, value);
  }
  const search = query.toString();
  go(location.pathname + (search ? `?${search}` : ""), "replace");
}

/** Asks a form before its page is left. Returns a function that removes it. */
export function guard(may: () => boolean): () => void {
  guards.add(may);
  return () => guards.delete(may);
}

function subscribe(listener: Listener): () => void {
  if (listeners.size === 0) window.addEventListener("popstate", tell);
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) window.removeEventListener("popstate", tell);
  };
}

/** The current route. */
export function useRoute(): Route {
  return useSyncExternalStore(subscribe, snapshot);
}
