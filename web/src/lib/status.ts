// Statuses: one word for one thing, a sign beside each, and the role of its colour.

import type { RunRow, RunView, Status } from "../api/types";

export type Tone = "plain" | "muted" | "good" | "attention" | "bad" | "accent";

interface Look {
  sign: string;
  tone: Tone;
  word: string;
}

const LOOKS: Record<Status | "gone" | "unreadable", Look> = {
  queued: { sign: "○", tone: "muted", word: "queued" },
  preparing: { sign: "◔", tone: "accent", word: "preparing" },
  working: { sign: "●", tone: "accent", word: "working" },
  verifying: { sign: "◐", tone: "accent", word: "verifying" },
  waiting: { sign: "◷", tone: "attention", word: "waiting" },
  paused: { sign: "Ⅱ", tone: "muted", word: "paused" },
  "needs you": { sign: "▲", tone: "attention", word: "needs you" },
  proving: { sign: "◑", tone: "accent", word: "proving" },
  publishing: { sign: "◕", tone: "accent", word: "publishing" },
  done: { sign: "✓", tone: "good", word: "done" },
  failed: { sign: "✗", tone: "bad", word: "failed" },
  stopped: { sign: "■", tone: "muted", word: "stopped" },
  gone: { sign: "–", tone: "muted", word: "gone" },
  unreadable: { sign: "–", tone: "bad", word: "unreadable" },
};

export function lookOf(status: string): Look {
  return LOOKS[status as Status] ?? { sign: "·", tone: "muted", word: status };
}

/** The filters of the runs list. */
export const GROUPS: { id: string; label: string; statuses: Status[] }[] = [
  { id: "needs", label: "needs you", statuses: ["needs you"] },
  { id: "working", label: "working", statuses: ["queued", "preparing", "working", "verifying", "proving", "publishing"] },
  { id: "waiting", label: "waiting", statuses: ["waiting", "paused"] },
  { id: "done", label: "done", statuses: ["done"] },
  { id: "failed", label: "failed", statuses: ["failed", "stopped"] },
];

export function isOver(status: string): boolean {
  return status === "done" || status === "failed" || status === "stopped";
}

export function isActive(status: string): boolean {
  return !isOver(status) && status !== "gone" && status !== "unreadable";
}

/** Steps of the five-step bar. */
export function loopSteps(score: number): number {
  return Math.max(0, Math.min(5, Math.round(score * 5)));
}

/** The colour of a budget: grey, amber at 80 %, red at 100 %. */
export function budgetTone(share: number): Tone {
  return share >= 1 ? "bad" : share >= 0.8 ? "attention" : "plain";
}

const KNOWN_AGENTS = ["claude", "codex", "gemini", "opencode", "actions", "scripted"];

/** A stable colour per agent, of six. */
export function agentColour(name: string): number {
  const known = KNOWN_AGENTS.findIndex((agent) => name === agent || name.startsWith(`${agent}-`));
  if (known >= 0) return known;
  let hash = 5381;
  for (const letter of name) hash = (hash * 33 + (letter.codePointAt(0) ?? 0)) % 4294967296;
  return hash % 6;
}

const VERDICTS: Record<string, string> = {
  candidate: "required checks pass, the final check follows",
  false_promise: "promised, but checks fail",
  checks_fail: "checks fail",
  not_promised: "not yet claimed as done",
  protected_changed: "protected paths changed",
  session_failed: "session failed",
};

export function verdictWords(verdict: string): string {
  return VERDICTS[verdict] ?? verdict.replaceAll("_", " ");
}

export function verdictTone(verdict: string): Tone {
  if (verdict === "candidate") return "good";
  return verdict === "not_promised" ? "plain" : "bad";
}

const ENDS: Record<string, string> = {
  completed: "completed", empty: "empty answer", failed: "agent failed", timed_out: "timed out",
  idle_timed_out: "silent too long", rate_limited: "rate limited", overloaded: "provider overloaded",
  unreachable: "provider not reachable", auth: "not logged in", billing: "no credit",
  context_too_long: "context too long", refused: "refused", unfinished: "ended without a result",
  stopped: "ended by ralph", interrupted: "interrupted",
};

export function endWords(how: string): string {
  return ENDS[how] ?? how.replaceAll("_", " ");
}

/** `proven · independent`, `own tests pass`. */
export function proofWords(level: string | null | undefined): string | null {
  if (level === "independent") return "proven · independent";
  if (level === "own_tests") return "own tests pass";
  return null;
}

/** `PR #41 draft`. */
export function prWords(row: Pick<RunRow, "pr_url" | "pr_number" | "pr_draft">): string {
  const number = row.pr_number ?? /\/(?:pull|pulls|merge_requests)\/(\d+)/.exec(row.pr_url ?? "")?.[1];
  return `PR${number ? ` #${number}` : ""}${row.pr_draft ? " draft" : ""}`;
}

/** `bench 61 ±0.8, target at most 50 (iteration 3)`. */
export function bestWords(best: NonNullable<RunView["best"]>): string {
  const noise = best.noise ? ` ±${best.noise}` : "";
  const target = best.target === undefined || best.target === null ? "" : `, target at ${best.rises ? "least" : "most"} ${best.target}`;
  return `${best.name} ${best.value}${noise}${target} (${best.iteration === 0 ? "at the start" : `iteration ${best.iteration}`})`;
}
