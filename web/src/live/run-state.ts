// A run as the page knows it: folded from the frames of its stream, each event once. Pure; the store around it connects.

import type { Cost } from "../lib/format";
import type { Control, EventFrame, EventLine, Frame, LiveRecord, RunView } from "../api/types";

/** Most events and lines of output that are kept; older ones load again on demand. */
export const EVENTS_KEPT = 5000;
export const LIVE_KEPT = 20000;

export interface Sent {
  key: number;
  control: Control;
  at: number;
  /** `sending` → `sent` (in the run's inbox) → `accepted` or `refused` (by the run). */
  state: "sending" | "sent" | "accepted" | "refused";
  letter: string | null;
  /** The server's answer: `received`, `saved`, `started`, `ended`. */
  outcome?: string;
  why: string | null;
}

export interface RunState {
  view: RunView | null;
  events: EventLine[];
  /** The last event that was seen; 0 before the first. */
  seq: number;
  live: LiveRecord[];
  /** The number of the last record of output. */
  n: number;
  lastOutputAt: string | null;
  activity: string | null;
  /** Cost of the latest session by the price list at its last report, if known. */
  sessionCost: { at: string; usd: number } | null;
  sent: Sent[];
  /** An event is missing: the stream must be read again from `seq + 1`. */
  gap: boolean;
}

export const EMPTY: RunState = {
  view: null, events: [], seq: 0, live: [], n: 0, lastOutputAt: null, activity: null, sessionCost: null, sent: [], gap: false,
};

function bounded<T>(list: T[], most: number): T[] {
  // Cut in large steps, not at every line.
  return list.length > most * 1.2 ? list.slice(list.length - most) : list;
}

/** Folds frames, in their order. */
export function apply(state: RunState, frames: Frame[]): RunState {
  const next: RunState = { ...state, events: [...state.events], live: [...state.live] };
  for (const frame of frames) {
    switch (frame.type) {
      case "hello":
      case "view":
        if (!next.view || frame.view.seq >= next.view.seq) next.view = frame.view;
        break;
      case "event":
        takeEvent(next, frame);
        break;
      case "output":
        takeOutput(next, frame);
        break;
      case "reread":
        // Too slow for a while, or output was put away: what is missing of the events shows as a gap.
        next.gap = true;
        break;
      default:
        break;
    }
  }
  next.events = bounded(next.events, EVENTS_KEPT);
  next.live = bounded(next.live, LIVE_KEPT);
  return next;
}

/** The event of a frame, with its sentence. */
export function eventOf(frame: EventFrame): EventLine {
  return { ...frame.event, seq: frame.seq, text: frame.text ?? null, tone: frame.tone ?? null };
}

function takeEvent(state: RunState, frame: EventFrame): void {
  if (frame.seq <= state.seq) return;
  if (state.seq > 0 && frame.seq > state.seq + 1) {
    state.gap = true;
    return;
  }
  const event = eventOf(frame);
  state.seq = frame.seq;
  state.events.push(event);
  if (event.kind === "session_ended") state.activity = null;
  if (event.kind === "control_received") settle(state, String(event.id ?? ""), "accepted", null);
  if (event.kind === "control_refused") settle(state, String(event.id ?? ""), "refused", String(event.reason ?? ""));
}

function takeOutput(state: RunState, frame: LiveRecord): void {
  if (frame.n <= state.n) return;
  state.n = frame.n;
  state.lastOutputAt = frame.at;
  if (frame.kind === "activity" && frame.text) state.activity = frame.text;
  if (frame.kind === "tokens") state.sessionCost = frame.cost_usd === undefined ? null : { at: frame.at, usd: frame.cost_usd };
  if (frame.kind === "tool_call") state.activity = [frame.name, frame.what].filter(Boolean).join(" ");
  state.live.push(frame);
}

/** When the session under way began; `null` while none works. */
function sessionBegan(view: RunView): number | null {
  return view.status === "working" && view.driven && view.current ? Date.parse(view.current.started_at) : null;
}

/** Seconds at work, counting while a session works. */
export function workedSeconds(view: RunView, now: number): number {
  const began = sessionBegan(view);
  return view.working_seconds + (began === null ? 0 : Math.max(0, (now - began) / 1000));
}

/** USD per millisecond of an agent's finished sessions, if every one of them has a known cost. */
function usualRate(view: RunView, agent: string): number | null {
  const sessions = view.history.filter((one) => one.agent === agent);
  const took = sessions.reduce((sum, one) => sum + one.duration_ms, 0);
  if (took === 0 || sessions.some((one) => one.cost_usd == null || one.cost_basis === "unknown")) return null;
  return sessions.reduce((sum, one) => sum + (one.cost_usd ?? 0), 0) / took;
}

/** What the run has cost. The session under way counts by its tokens, else by the agent's usual cost per minute, else as unknown. */
export function costSoFar(view: RunView, session: RunState["sessionCost"], now: number): Cost {
  const { spent } = view;
  const began = sessionBegan(view);
  if (began === null) return spent;
  const rate = usualRate(view, view.current?.agent ?? "");
  const usd = session !== null && Date.parse(session.at) >= began ? session.usd : rate === null ? null : rate * Math.max(0, now - began);
  // Before the first session has ended nothing else was spent.
  const partly = spent.cost_basis === "unknown" && spent.sessions > 0;
  if (usd === null) return { cost_usd: spent.sessions > 0 ? (spent.cost_usd ?? null) : null, cost_basis: "unknown" };
  return { cost_usd: (spent.cost_usd ?? 0) + usd, cost_basis: partly ? "unknown" : "estimated" };
}

function settle(state: RunState, letter: string, how: "accepted" | "refused", why: string | null): void {
  state.sent = state.sent.map((sent) =>
    sent.letter === letter && sent.state !== "refused" ? { ...sent, state: how, why } : sent,
  );
}

/** Events from the record, older than those that the stream brought. */
export function prepend(state: RunState, older: EventLine[]): RunState {
  const first = state.events[0]?.seq ?? state.seq + 1;
  const known = older.filter((event) => event.seq < first);
  return known.length === 0 ? state : { ...state, events: [...known, ...state.events] };
}

/** A control of this kind that was sent and isn't answered yet. */
export function awaited(state: RunState, control: Control["control"]): Sent | null {
  const sent = [...state.sent].reverse().find((one) => one.control.control === control);
  return sent && (sent.state === "sending" || sent.state === "sent") ? sent : null;
}
