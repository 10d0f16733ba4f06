import { useCallback, useEffect, useRef, useState, useSyncExternalStore } from "react";
import { asProblem, type Problem } from "../api/client";
import { setTitle } from "./attention";

// One clock for every age on the page.
let now = Date.now();
const clocks = new Set<() => void>();
let ticking: ReturnType<typeof setInterval> | null = null;

function watchClock(listener: () => void): () => void {
  clocks.add(listener);
  ticking ??= setInterval(() => {
    now = Date.now();
    clocks.forEach((tell) => tell());
  }, 1000);
  return () => {
    clocks.delete(listener);
    if (clocks.size === 0 && ticking) {
      clearInterval(ticking);
      ticking = null;
    }
  };
}

/** The time, every second. */
export function useNow(): number {
  return useSyncExternalStore(watchClock, () => now);
}

/** A text that depends on the time; its component renders again only when the text changes. */
export function useTimeWords(make: (now: number) => string): string {
  return useSyncExternalStore(watchClock, () => make(now));
}

export interface Loaded<T> {
  data: T | null;
  problem: Problem | null;
  loading: boolean;
  reload: () => void;
}

/** Reads something, again when a dependency changes; what is shown stays until the new is there. */
export function useLoad<T>(read: (signal: AbortSignal) => Promise<T>, deps: readonly unknown[]): Loaded<T> {
  const [state, setState] = useState<{ data: T | null; problem: Problem | null; loading: boolean }>({ data: null, problem: null, loading: true });
  const [again, setAgain] = useState(0);
  // eslint-disable-next-line react-hooks/exhaustive-deps
  const call = useCallback(read, deps);
  useEffect(() => {
    const stop = new AbortController();
    setState((old) => ({ ...old, loading: true }));
    call(stop.signal).then(
      (data) => !stop.signal.aborted && setState({ data, problem: null, loading: false }),
      (error: unknown) => !stop.signal.aborted && setState((old) => ({ data: old.data, problem: asProblem(error), loading: false })),
    );
    return () => stop.abort();
  }, [call, again]);
  const reload = useCallback(() => setAgain((n) => n + 1), []);
  return { ...state, reload };
}

/** A value that waits until it has been still for a while. */
export function useSettled<T>(value: T, ms: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}

/** A value that changes at most so often: what is expensive to draw keeps up with a flood. */
export function useThrottled<T>(value: T, ms: number): T {
  const [shown, setShown] = useState(value);
  const latest = useRef(value);
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  latest.current = value;
  useEffect(() => {
    timer.current ??= setTimeout(() => {
      timer.current = null;
      setShown(latest.current);
    }, ms);
  }, [value, ms]);
  useEffect(
    () => () => {
      if (timer.current) clearTimeout(timer.current);
      timer.current = null;
    },
    [],
  );
  return shown;
}

/** Whether the window is at least so wide. */
export function useWide(px: number): boolean {
  const query = `(min-width: ${px}px)`;
  return useSyncExternalStore(
    (tell) => {
      const list = matchMedia(query);
      list.addEventListener("change", tell);
      return () => list.removeEventListener("change", tell);
    },
    () => matchMedia(query).matches,
  );
}

/** The title of the browser's tab. */
export function useTitle(title: string): void {
  useEffect(() => {
    setTitle(title);
  }, [title]);
}

/** The newest version of a function, with a stable identity. */
export function useLatest<A extends unknown[], R>(call: (...args: A) => R): (...args: A) => R {
  const latest = useRef(call);
  latest.current = call;
  return useCallback((...args: A) => latest.current(...args), []);
}
