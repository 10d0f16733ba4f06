// Keys of the page: one place that listens, so that the sheet of `?` is never wrong.

import { useLayoutEffect } from "react";
import { useLatest } from "./hooks";

export interface KeyBinding {
  /** One key (`p`, `?`, `/`), or two in a row (`g r`). */
  keys: string;
  what: string;
  group: "everywhere" | "runs" | "run" | "timeline" | "diff" | "logs";
  run: () => void;
}

const bound = new Map<string, KeyBinding[]>();
let first = "";
let firstAt = 0;

/** Everything that is bound at this moment. */
export function bindings(): KeyBinding[] {
  return [...bound.values()].map((list) => list[list.length - 1]).filter((b): b is KeyBinding => b !== undefined);
}

function typing(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName);
}

function pressed(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (typing(event.target) || document.querySelector("dialog[open]")) return;
  const joined = Date.now() - firstAt < 1200 && first ? `${first} ${event.key}` : event.key;
  const binding = bound.get(joined)?.at(-1) ?? bound.get(event.key)?.at(-1);
  if (binding) {
    event.preventDefault();
    first = "";
    binding.run();
    return;
  }
  first = event.key;
  firstAt = Date.now();
}

// Tests of pure parts have no window.
if (typeof window !== "undefined") window.addEventListener("keydown", pressed);

/** Binds keys while the component is shown; the newest binding of a key counts. */
export function useKeys(list: Omit<KeyBinding, "run">[], run: (keys: string) => void): void {
  const call = useLatest(run);
  const id = list.map((one) => `${one.keys}${one.what}`).join("|");
  // Bound before the first paint, so that a visible page takes its keys.
  useLayoutEffect(() => {
    const made = list.map((one): KeyBinding => ({ ...one, run: () => call(one.keys) }));
    for (const one of made) bound.set(one.keys, [...(bound.get(one.keys) ?? []), one]);
    return () => {
      for (const one of made) {
        const left = (bound.get(one.keys) ?? []).filter((other) => other !== one);
        if (left.length === 0) bound.delete(one.keys);
        else bound.set(one.keys, left);
      }
    };
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [id, call]);
}
