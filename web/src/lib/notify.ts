// Browser notifications: a run needs you, or has ended. Only a button asks for the permission.

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

/** The text of a notification, or null if the change needs none. */
export function worthTelling(row: RunRow, before: RunRow | undefined): string | null {
  if (!before || before.status === row.status) return null;
  if (row.status === "needs you") return `Needs you: ${short(row.now ?? "waiting for your answer", 140)}`;
  if (row.status === "done") return "Done.";
  if (row.status === "failed") return `Failed: ${short(row.now ?? "the run's page says why", 140)}`;
  return null;
}

/** Watches all runs while the user is logged in. */
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
