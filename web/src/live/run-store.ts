// Keeps one run live: reads it, follows its stream, comes back after a loss from the last event.

import { useEffect, useState, useSyncExternalStore } from "react";
import { api } from "../api/calls";
import { asProblem, type Problem } from "../api/client";
import type { Control, Frame, Race, RunRow } from "../api/types";
import { cleanDeep } from "../lib/clean";
import { apply, EMPTY, eventOf, prepend, type RunState, type Sent } from "./run-state";
import { Link, type LinkState } from "./socket";

/** Events before the newest that are read at first. */
const FIRST = 1000;

export interface RunSnapshot extends RunState {
  link: LinkState;
  retryAt: number | null;
  problem: Problem | null;
  mode: string;
  /** Its race, as of the first load. */
  race: Race | null;
  /** Its list row; the only data of a queued run. */
  row: RunRow | null;
  /** Possible controls as of the first load. */
  actions: string[] | null;
}

export class RunStore {
  private state: RunSnapshot = { ...EMPTY, link: "connecting", retryAt: null, problem: null, mode: "autonomous", race: null, row: null, actions: null };
  private readonly listeners = new Set<() => void>();
  private readonly waiting: Frame[] = [];
  private scheduled = false;
  private link: Link | null = null;
  private closed = false;
  private keys = 0;
  private readonly loading = new AbortController();

  constructor(readonly id: string) {
    void this.start();
  }

  private async start(): Promise<void> {
    for (let tries = 0; !this.closed; tries++) {
      try {
        const { view, row, mode, actions, race } = await api.view(this.id, this.loading.signal);
        this.set({ view, row, mode, race: race ?? null, actions: actions ?? null, seq: Math.max(0, (view?.seq ?? 0) - FIRST), problem: null });
        if (view) break;
        await new Promise((done) => setTimeout(done, 1000));
      } catch (error) {
        if (this.closed) return;
        const problem = asProblem(error);
        this.set({ problem, link: problem.offline ? "offline" : "connecting" });
        if (!problem.offline) return;
        await new Promise((done) => setTimeout(done, Math.min(500 * 2 ** tries, 8000)));
      }
    }
    if (this.closed) return;
    this.link = new Link({
      path: () => `/runs/${encodeURIComponent(this.id)}/ws?from=${this.state.seq + 1}${this.state.n > 0 ? `&live=${this.state.n}` : ""}`,
      onFrame: (frame) => this.take(cleaned(frame as Frame)),
      onState: (link, retryAt) => this.set({ link, retryAt }),
    });
  }

  private take(frame: Frame): void {
    this.waiting.push(frame);
    if (this.scheduled) return;
    this.scheduled = true;
    // Hidden pages get no animation frames, but their notifications must come.
    if (document.hidden) setTimeout(() => this.flush(), 250);
    else requestAnimationFrame(() => this.flush());
  }

  private flush(): void {
    this.scheduled = false;
    const frames = this.waiting.splice(0);
    const next = apply(this.state, frames);
    this.state = { ...this.state, ...next, gap: false };
    if (next.gap) this.link?.reread();
    this.tell();
  }

  private set(change: Partial<RunSnapshot>): void {
    this.state = { ...this.state, ...change };
    this.tell();
  }

  private tell(): void {
    this.listeners.forEach((listener) => listener());
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };
  readonly snapshot = (): RunSnapshot => this.state;
  readonly retry = (): void => {
    if (this.link) this.link.retry();
    else void this.start();
  };

  /** Sends a control and records its outcome. */
  async send(control: Control): Promise<Sent> {
    const key = ++this.keys;
    const sent: Sent = { key, control, at: Date.now(), state: "sending", letter: null, why: null };
    this.set({ sent: [...this.state.sent.slice(-20), sent] });
    const change = (to: Partial<Sent>): void =>
      this.set({ sent: this.state.sent.map((one) => (one.key === key ? { ...one, ...to } : one)) });
    try {
      const answer = await api.control(this.id, control);
      const letter = answer?.letter ?? null;
      const seen = this.state.events.find((event) => event.id === letter && letter !== null);
      if (seen?.kind === "control_refused") change({ letter, state: "refused", why: String(seen.reason ?? "") });
      else change({ letter, outcome: answer?.outcome ?? "", state: seen || answer?.outcome !== "saved" ? "accepted" : "sent" });
    } catch (error) {
      change({ state: "refused", why: asProblem(error).detail || asProblem(error).title });
      throw error;
    }
    return this.state.sent.find((one) => one.key === key) ?? sent;
  }

  /** Reads older events of the record. */
  async older(): Promise<void> {
    const first = this.state.events[0]?.seq ?? this.state.seq + 1;
    if (first <= 1) return;
    const from = Math.max(1, first - FIRST);
    const answer = await api.events(this.id, from, first - from);
    this.state = { ...this.state, ...prepend(this.state, answer.events.map(eventOf)) };
    this.tell();
  }

  close(): void {
    this.closed = true;
    this.loading.abort();
    this.link?.close();
  }
}

/** Output keeps its colors: the component that draws it cleans it. */
function cleaned(frame: Frame): Frame {
  if (frame.type !== "output") return cleanDeep(frame);
  const { text, ...rest } = frame;
  return text === undefined ? cleanDeep(frame) : { ...cleanDeep(rest), text };
}

/** The store of a run, for as long as a component shows it. */
export function useRun(id: string): { store: RunStore; run: RunSnapshot } | null {
  const [store, setStore] = useState<RunStore | null>(null);
  useEffect(() => {
    const made = new RunStore(id);
    setStore(made);
    return () => {
      made.close();
      setStore(null);
    };
  }, [id]);
  const run = useSyncExternalStore(store?.subscribe ?? nothing, store?.snapshot ?? none);
  return store && run && store.id === id ? { store, run } : null;
}

const nothing = () => () => {};
const none = () => null;
