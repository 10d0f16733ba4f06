import { useSyncExternalStore } from "react";
import type { Tone } from "../lib/status";

interface Toast {
  key: number;
  text: string;
  tone: Tone;
}

let toasts: Toast[] = [];
let keys = 0;
const listeners = new Set<() => void>();

function set(next: Toast[]): void {
  toasts = next;
  listeners.forEach((tell) => tell());
}

/** A short message at the edge of the page. */
export function toast(text: string, tone: Tone = "plain"): void {
  const key = ++keys;
  set([...toasts.slice(-3), { key, text, tone }]);
  setTimeout(() => set(toasts.filter((one) => one.key !== key)), tone === "bad" ? 10000 : 5000);
}

export function Toasts() {
  const list = useSyncExternalStore(
    (tell) => {
      listeners.add(tell);
      return () => listeners.delete(tell);
    },
    () => toasts,
  );
  return (
    <div className="toasts" role="status" aria-live="polite">
      {list.map((one) => (
        <div key={one.key} className={`toast tone-${one.tone}`}>
          <span>{one.text}</span>
          <button type="button" className="icon" aria-label="Dismiss" onClick={() => set(toasts.filter((t) => t.key !== one.key))}>
            ×
          </button>
        </div>
      ))}
    </div>
  );
}
