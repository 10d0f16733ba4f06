// All runs, as lists show them: pages of the server's index, kept live by one stream for the whole page.

import { useSyncExternalStore } from "react";
import { api } from "../api/calls";
import type { Frame, RunRow } from "../api/types";
import { cleanDeep } from "../lib/clean";
import { GROUPS } from "../lib/status";
import { Link, type LinkState } from "./socket";

interface ListSnapshot {
  link: LinkState;
  retryAt: number | null;
  /** Rises when frames may have been lost; lists then load again. */
  generation: number;
  /** Every known row by id, in its latest version. */
  rows: ReadonlyMap<string, RunRow>;
  gone: ReadonlySet<string>;
}

/** Rows that are remembered. A page of a hundred thousand runs shows a window of them. */
const KEPT = 20000;

/** Statuses of runs that are under way. */
const ACTIVE = GROUPS.filter((group) => group.id === "working" || group.id === "waiting").flatMap((group) => group.statuses).join(",");

type RowWatcher = (row: RunRow, before: RunRow | undefined) => void;

class ListStore {
  private state: ListSnapshot = { link: "connecting", retryAt: null, generation: 0, rows: new Map(), gone: new Set() };
  private readonly listeners = new Set<() => void>();
  private readonly watchers = new Set<RowWatcher>();
  private link: Link | null = null;
  private waiting: Frame[] = [];
  private scheduled = false;
  private dropped = false;

  open(): void {
    if (this.link) return;
    this.link = new Link({
      path: () => "/ws",
      onFrame: (frame) => this.take(cleanDeep(frame as Frame)),
      onState: (link, retryAt) => {
        if (link === "offline") {
          // The session may have ended rather than the connection; the answer shows which.
          if (this.dropped) void api.me().catch(() => null);
          this.dropped = true;
        }
        // The stream has no frames from before it connected.
        const there = link === "live";
        if (there) {
          this.dropped = false;
          this.readUnfinished();
        }
        this.set({ link, retryAt, ...(there ? { generation: this.state.generation + 1 } : {}) });
      },
    });
  }

  /** Every page shows how many runs need you, and lists show unfinished runs first, however old they are. */
  private readUnfinished(): void {
    for (const status of ["needs you", ACTIVE]) api.runs({ status, limit: 100 }).then((page) => this.learn(page.runs), () => null);
  }

  close(): void {
    this.link?.close();
    this.link = null;
    this.set({ rows: new Map(), gone: new Set() });
  }

  private take(frame: Frame): void {
    this.waiting.push(frame);
    if (this.scheduled) return;
    this.scheduled = true;
    setTimeout(() => this.flush(), document.hidden ? 500 : 80);
  }

  private flush(): void {
    this.scheduled = false;
    const frames = this.waiting;
    this.waiting = [];
    const fresh: RunRow[] = [];
    const gone = new Set(this.state.gone);
    let generation = this.state.generation;
    for (const frame of frames) {
      // One that was taken out may come back under its name.
      if (frame.type === "row") (fresh.push(frame.row), gone.delete(frame.row.id));
      else if (frame.type === "gone" || frame.type === "removed") gone.add(frame.id);
      else if (frame.type === "reread") generation++;
    }
    for (const row of fresh) {
      const before = this.state.rows.get(row.id);
      this.watchers.forEach((watcher) => watcher(row, before));
    }
    this.set({ generation, gone });
    this.learn(fresh);
  }

  /** Takes rows of a request or the stream. */
  readonly learn = (rows: RunRow[]): void => {
    if (rows.length === 0) return;
    const next = new Map(this.state.rows);
    for (const row of rows) {
      const known = next.get(row.id);
      if (known && known.updated_at > row.updated_at) continue;
      next.delete(row.id);
      next.set(row.id, row);
    }
    for (const id of next.keys()) {
      if (next.size <= KEPT) break;
      next.delete(id);
    }
    this.set({ rows: next });
  };

  private set(change: Partial<ListSnapshot>): void {
    this.state = { ...this.state, ...change };
    this.listeners.forEach((listener) => listener());
  }

  /** Called for each row of the stream; returns a function that ends it. */
  watch(watcher: RowWatcher): () => void {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }
  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };
  readonly snapshot = (): ListSnapshot => this.state;
  readonly retry = (): void => this.link?.retry();
}

export const runsLive = new ListStore();

export function useRunsLive(): ListSnapshot {
  return useSyncExternalStore(runsLive.subscribe, runsLive.snapshot);
}
