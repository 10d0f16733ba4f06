// Title and icon of the browser's tab: how many runs need you, and whether one works or has finished.

import type { RunRow } from "../api/types";
import { runsLive } from "../live/list-store";
import { isActive } from "./status";

export interface Attention {
  needs: number;
  working: boolean;
  /** A run was done since the page last had the focus. */
  finished: boolean;
}

let base = "ralph";
let needs = 0;

/** `(2) ▲ Keep router order · ralph`. */
export function tabTitle(title: string, waiting: number): string {
  return waiting > 0 ? `(${waiting}) ${title}` : title;
}

/** Sets the title of the page, behind the number of runs that need you. */
export function setTitle(title: string): void {
  base = title;
  document.title = tabTitle(base, needs);
}

/** The state of all known runs. */
export function attentionOf(rows: Iterable<RunRow>): Pick<Attention, "needs" | "working"> {
  let [waiting, working] = [0, false];
  for (const row of rows) {
    if (row.status === "needs you") waiting++;
    else working ||= isActive(row.status) && row.driven === true;
  }
  return { needs: waiting, working };
}

/** The icon: amber if a run needs you, green if one has finished, a ring while one works. */
export function iconOf({ needs: waiting, working, finished }: Attention): string {
  const dot = (fill: string) => `<circle cx="24" cy="24" r="7" fill="${fill}" stroke="#fff" stroke-width="2"/>`;
  const mark = waiting > 0 ? dot("#e08a00") : finished ? dot("#16a34a") : working ? '<circle cx="24" cy="24" r="6" fill="#0e7490" stroke="#fff" stroke-width="3"/>' : "";
  const arrow = '<path d="M22.500 11.200A8 8 0 1 0 24 16M24.500 6.500v5.600h-5.600" fill="none" stroke="#fff" stroke-width="3" stroke-linecap="round" stroke-linejoin="round"/>';
  return `data:image/svg+xml,${encodeURIComponent(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#0e7490"/>${arrow}${mark}</svg>`)}`;
}

/** Keeps the tab up to date; returns a function that ends it. */
export function watchAttention(): () => void {
  let finished = false;
  let shown = "";
  const draw = () => {
    const { rows, gone } = runsLive.snapshot();
    const now = { ...attentionOf([...rows.values()].filter((row) => !gone.has(row.id))), finished };
    const key = JSON.stringify(now);
    if (key === shown) return;
    shown = key;
    needs = now.needs;
    document.title = tabTitle(base, needs);
    document.querySelector<HTMLLinkElement>('link[rel="icon"]')?.setAttribute("href", iconOf(now));
    if ("setAppBadge" in navigator) void navigator.setAppBadge(needs).catch(() => null);
  };
  const seen = () => {
    finished = false;
    draw();
  };
  const ends = [
    runsLive.subscribe(draw),
    runsLive.watch((row, before) => {
      if (before && before.status !== "done" && row.status === "done" && !document.hasFocus()) finished = true;
    }),
  ];
  window.addEventListener("focus", seen);
  return () => {
    window.removeEventListener("focus", seen);
    ends.forEach((end) => end());
  };
}
