// Notifications of the browser: a run needs somebody, or is over. Asked for by a button, never by itself.

import type { RunRow } from "../api/types";
import { runsLive } from "../live/list-store";
import { go, runPath } from "../router";
import { short } from "./clean";
import { remembered } from "./storage";

export type Allowed = "on" | "off" | "denied" | "impossible";

export function notifications(): Allowed {
  if (!("Notification" in window)) return "impossible";
  if (Notification.permission === "denied") return "denied";
  return Notification.permission === "granted" && remembered.get("notify") === "on" ? "on" : "off";
}

export async function allowNotifications(on: boolean): Promise<Allowed> {
  if (!on) remembered.set("notify", null);
  else if ("Notification" in window && (await Notification.requestPermission()) === "granted") remembered.set("notify", "on");
  return notifications();
}

/** What is worth a notification: the words of it, or nothing. */
export function worthTelling(row: RunRow, before: RunRow | undefined): string | null {
  if (!before || before.status === row.status) return null;
  if (row.status === "needs you") return `Needs you: ${short(row.now ?? "an answer is wanted", 140)}`;
  if (row.status === "done") return "Done.";
  if (row.status === "failed") return `Failed: ${short(row.now ?? "see why on its page", 140)}`;
  return null;
}

/** Watches all runs while somebody is logged in. */
export function watchForNotifications(): () => void {
  return runsLive.watch((row, before) => {
    const text = worthTelling(row, before);
    if (!text || notifications() !== "on" || (document.hasFocus() && location.pathname.startsWith(runPath(row.id)))) return;
    const shown = new Notification(short(row.task, 80), { body: text, tag: row.id, icon: "/icon.svg" });
    shown.onclick = () => {
      window.focus();
      go(runPath(row.id));
      shown.close();
    };
  });
}
