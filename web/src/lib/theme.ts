import { useSyncExternalStore } from "react";
import { remembered } from "./storage";

export type Theme = "system" | "light" | "dark";
const listeners = new Set<() => void>();

export function theme(): Theme {
  const chosen = remembered.get("theme");
  return chosen === "light" || chosen === "dark" ? chosen : "system";
}

export function setTheme(next: Theme): void {
  remembered.set("theme", next === "system" ? null : next);
  if (next === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  listeners.forEach((tell) => tell());
}

export function useTheme(): Theme {
  return useSyncExternalStore(
    (tell) => {
      listeners.add(tell);
      return () => listeners.delete(tell);
    },
    theme,
  );
}

/** Whether the page is dark at this moment. */
export function isDark(): boolean {
  const chosen = theme();
  return chosen === "system" ? matchMedia("(prefers-color-scheme: dark)").matches : chosen === "dark";
}
