// Statuses: one word and one sign each, and the role of its color.

import type { RunRow, RunView, Status } from "../api/types";
import { LOOKS } from "../types/looks";

export type Tone = "plain" | "muted" | "good" | "attention" | "bad" | "accent";

interface Look {
  sign: string;
  tone: Tone;
  word: string;
  /** Its group in a list: 0 needs you, 1 works, 2 the rest. */
  rank: number;
}

export function lookOf(status: string): Look {
  const look = LOOKS.statuses[status as keyof typeof LOOKS.statuses] as (typeof LOOKS.statuses)[keyof typeof LOOKS.statuses] | undefined;
  return look ? { sign: look.sign, tone: look.role, rank: look.rank, word: status } : { sign: "·", tone: "muted", rank: 2, word: status };
}

/** What needs you first, then what is under way, then the rest; each group keeps its order. */
export function byAttention(rows: RunRow[]): RunRow[] {
  const rank = (status: string) => Math.min(lookOf(status).rank, isActive(status) ? 1 : 2);
  return [...rows].sort((a, b) => rank(a.status) - rank(b.status));
}

/** The filters of the runs list. */
export const GROUPS: { id: string; label: string; statuses: Status[] }[] = [
  { id: "needs", label: "needs you", statuses: ["needs you"] },
  { id: "working", label: "working", statuses: ["queued", "preparing", "working", "verifying", "proving", "publishing"] },
  { id: "waiting", label: "waiting", statuses: ["waiting", "paused", "interrupted"] },
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

/** The color of a budget: gray, amber at 80 %, red at 100 %. */
export function budgetTone(share: number): Tone {
  return share >= 1 ? "bad" : share >= 0.8 ? "attention" : "plain";
}

/** The place of an agent's color among the six; the same for `claude` and `claude-opus`. */
export function agentColor(name: string): number {
  const known = LOOKS.agents.findIndex((agent) => name === agent || name.startsWith(`${agent}-`));
  if (known >= 0) return known;
  let hash = 5381;
  for (const letter of name) hash = (hash * 33 + (letter.codePointAt(0) ?? 0)) % 4294967296;
  return hash % LOOKS.colors.length;
}

/** Why passing checks don't end the run: shown with the verdict `not_promised`. */
export const CLAIM_RULE = "The final check starts once the agent claims the task is done, with its promise alone on a line.";

const VERDICTS: Record<string, string> = {
  candidate: "checks pass → final check",
  false_promise: "claimed, but checks fail",
  checks_fail: "checks fail",
  not_promised: "checks pass, not claimed",
  no_change: "no changes",
  protected_changed: "protected paths changed",
  session_failed: "session failed",
};

interface VerdictLook {
  sign: string;
  words: string;
  tone: Tone;
  /** A rule that explains it. */
  rule?: string;
}

/** The verdict of an iteration. A candidate that the run continued from, or whose final check failed, isn't good. */
export function verdictLook(verdict: string, finalCheck: "passed" | "failed" | null): VerdictLook {
  if (verdict === "candidate" && finalCheck === "failed") return { sign: "✗", words: "checks pass, final check failed", tone: "bad" };
  if (verdict === "candidate" && finalCheck === "passed") return { sign: "✓", words: "final check passed", tone: "good" };
  const words = VERDICTS[verdict] ?? verdict.replaceAll("_", " ");
  if (verdict === "candidate") return { sign: "✓", words, tone: "good" };
  if (verdict === "not_promised") return { sign: "○", words, tone: "attention", rule: CLAIM_RULE };
  return verdict === "no_change" ? { sign: "○", words, tone: "attention" } : { sign: "✗", words, tone: "bad" };
}

/** The final check of an iteration. It failed if a later iteration exists. */
export function finalCheckOf(one: { iteration: number }, view: Pick<RunView, "iterations" | "proof" | "current">): "passed" | "failed" | null {
  if (one.iteration < (view.current?.iteration ?? view.iterations)) return "failed";
  return view.proof?.over ? (view.proof.passed ? "passed" : "failed") : null;
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

const LEVELS: Record<string, string> = {
  independent: "proven, independent",
  own_tests: "own tests",
  unverified: "done, unverified",
  already_true: "already true",
};

/** A proof's level in a list; the run's page shows the whole headline. */
export function proofWords(level: string | null | undefined): string | null {
  return (level && LEVELS[level]) || null;
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
