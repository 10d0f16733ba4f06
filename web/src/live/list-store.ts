// All runs, as lists show them: pages of the server's index, kept live by one stream for the whole page.

import { useSyncExternalStore } from "react";
import { api } from "../api/calls";
import type { Frame, RunRow } from "../api/types";
import { cleanDeep } from "../lib/clean";
import { Link, type LinkState } from "./socket";

interface ListSnapshot {
  link: LinkState;
  retryAt: number | null;
  /** Rises when something may have been missed: whoever shows a list reads it again. */
  generation: number;
  /** Every row that is known, by id, as it was last told. */
  rows: ReadonlyMap<string, RunRow>;
  gone: ReadonlySet<string>;
}

/** Rows that are remembered. A page of a hundred thousand runs shows a window of them. */
const KEPT = 20000;

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
          // Perhaps it is not the connection that ended, but the session: the answer tells.
          if (this.dropped) void api.me().catch(() => null);
          this.dropped = true;
        }
        // What happened before the stream was there is in no frame of it, the first time as after a break.
        const there = link === "live";
        if (there) {
          this.dropped = false;
          this.readNeeds();
        }
        this.set({ link, retryAt, ...(there ? { generation: this.state.generation + 1 } : {}) });
      },
    });
  }

  /** Those that need somebody count on every page, so they are known from the start. */
  private readNeeds(): void {
    api.runs({ status: "needs you", limit: 100 }).then((page) => this.learn(page.runs), () => null);
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

  /** Rows that were read or told. */
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

  /** Called for each row that the stream tells; returns how it ends. */
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
