// Answers of the server, in addition to the published types of a run.

import type { IterationView, NeedsView, RunView } from "../types/view";
import type { Receipt } from "../types/receipt";
import type { Report } from "../types/diagnosis";
import type { FileChange, Signals } from "../types/events";

export type { IterationView, RunView } from "../types/view";
export type { CriterionView, CheckView, BudgetView, AgentView, NeedsView, CheckResult } from "../types/view";
export type { Receipt } from "../types/receipt";
export type { Report } from "../types/diagnosis";
export type { FileChange, Signals } from "../types/events";

export type Status = RunView["status"];
export type Role = "viewer" | "operator" | "admin";
export type Mode = "autonomous" | "guided" | "debug";

export interface Me {
  name: string;
  role: Role;
  csrf: string;
  version: string;
  demo?: boolean;
  debug_commands?: string[];
}

/** One run in the list. */
export interface RunRow {
  id: string;
  task: string;
  repo: string;
  folder?: string | null;
  branch?: string | null;
  status: Status | "gone" | "unreadable";
  now?: string | null;
  iteration: number;
  max_iterations?: number | null;
  loop_score: number | null;
  cost_usd: number | null;
  cost_basis: "reported" | "estimated" | "unknown";
  budget_usd?: number | null;
  criteria_met: number;
  criteria_total: number;
  agent?: string | null;
  model?: string | null;
  provider?: string | null;
  mode?: string | null;
  pr_url?: string | null;
  pr_number?: number | null;
  pr_draft?: boolean | null;
  proof_level?: "independent" | "own_tests" | "unverified" | "already_true" | null;
  /** Whether the run waits for the user; `now` has the question. */
  needs_you?: boolean;
  needs?: NeedsView["reason"] | null;
  /** Tests after the last iteration, and those passing after each of the last ones. */
  tests?: { passed: number; failed: number; series: (number | null)[] } | null;
  orphaned?: boolean;
  driven?: boolean;
  person?: string | null;
  /** Why it can't be read or started. */
  problem?: string | null;
  /** Position in the queue, before it starts. */
  queued?: number | null;
  created_at: string;
  updated_at: string;
  ended_at?: string | null;
}

export interface RunsPage {
  runs: RunRow[];
  next_cursor?: string | null;
  total: number;
  /** Count per status, without the filter. */
  counts?: Record<string, number>;
}

/** One run with everything its page needs. */
export interface RunAnswer {
  row: RunRow;
  /** Null while the run is queued. */
  view: RunView | null;
  mode: string;
  spec_version?: number;
  settings?: { agents?: string[]; isolation?: string | null; provider?: string | null; publish?: string | null };
  /** Controls that make sense now. */
  actions?: string[];
  /** The race it belongs to. */
  race?: Race | null;
}

/** An event as the page reads it. */
export interface EventLine {
  seq: number;
  at: string;
  kind: string;
  text?: string | null;
  tone?: "plain" | "muted" | "good" | "attention" | "bad" | null;
  iteration?: number;
  [key: string]: unknown;
}

/** A piece of live output. */
export interface LiveRecord {
  n: number;
  at: string;
  /** The event before it. */
  after: number;
  iteration: number;
  kind: "text" | "stderr" | "activity" | "tool_call" | "tool_result" | "check_output" | "tokens" | "left_out" | string;
  text?: string;
  name?: string;
  what?: string;
  ok?: boolean;
  check?: string;
  bytes?: number;
  /** Of `tokens`: what the session has cost so far by the price list. */
  cost_usd?: number;
}

export interface EventFrame {
  type: "event";
  seq: number;
  event: EventLine;
  text?: string | null;
  tone?: EventLine["tone"];
}

export type Frame =
  | EventFrame
  | { type: "hello"; head: number; from: number; view: RunView }
  | ({ type: "output" } & LiveRecord)
  | { type: "view"; view: RunView }
  | { type: "reread"; from?: number }
  | { type: "row"; row: RunRow }
  | { type: "gone" | "removed"; id: string }
  | { type: "ping" };

export interface Finding {
  severity: "error" | "warning" | "note" | string;
  line?: number | null;
  column?: number | null;
  code?: string | null;
  message: string;
  /** How to fix it. */
  fix?: string | null;
}

export interface LintAnswer {
  ok?: boolean;
  dialect?: string | null;
  findings: Finding[];
  task?: LintedTask | null;
}

export interface LintedTask {
  title?: string;
  dialect?: string;
  criteria?: { id: string; text: string; check?: string }[];
  [key: string]: unknown;
}

export interface Template {
  name: string;
  title: string;
  text: string;
  description?: string | null;
}

export interface Repo {
  path: string;
  name: string;
}

/** What a new run in a repo may choose from. */
export interface Suggestions {
  branches: string[];
  branch: string | null;
  agents: string[];
  profiles: string[];
  task_files: string[];
}

export interface NewRun {
  repo: string;
  text?: string;
  task?: string;
  task_file?: string;
  verify?: string[];
  base_branch?: string;
  provider?: string;
  image?: string;
  resources?: { cpus?: number; memory_mb?: number; disk_gb?: number };
  agents?: string[];
  model?: string;
  profiles?: { default?: string; fallback?: string };
  isolation?: string;
  mode?: string;
  place?: string;
  publish?: string;
  limits?: { max_iterations?: number; max_minutes?: number; max_cost_usd?: number };
  auth?: string;
  /** Who races: agents or models, or one number. */
  race?: string[];
  best?: string;
  /** What the worker must have, in a fleet. */
  labels?: string[];
}

/** Several runs of one task side by side. */
export interface Race {
  /** The id of its first run. */
  id: string;
  title: string;
  by: "first" | "metric" | "diff" | "cost";
  budget_usd: number;
  cost_usd: number | null;
  cost_basis: "reported" | "estimated" | "unknown";
  winner?: string | null;
  ended?: string | null;
  over: boolean;
  looked_after: boolean;
  runs: RaceRun[];
}

export interface RaceRun {
  name: string;
  run_id: string;
  begun: boolean;
  status: string;
  detail: string;
  iteration: number;
  max_iterations: number;
  cost_usd: number | null;
  cost_basis: Race["cost_basis"];
  best?: number | null;
  proven: boolean;
  exit_code?: number | null;
}

/** A finished iteration, with what the list of all of them adds. */
export type IterationLine = IterationView & {
  model?: string | null;
  tokens?: number | { input: number; output: number; cached?: number; cache_write?: number } | null;
  receipt?: Receipt | null;
  /** The metric of the task, if it has one. */
  metric?: number | null;
  metric_label?: string | null;
};

export interface IterationDetail {
  receipt: Receipt | null;
  prompt?: string | null;
  patch?: string | null;
  response?: string | null;
  signals?: Signals | null;
  files?: FileChange[];
  artifacts?: Artifact[];
}

/** Lines of an output with some words. */
export interface OutputHits {
  hits: { offset: number; line: string }[];
  /** Where the next search begins. */
  next: number;
  size: number;
}

export interface OutputPart {
  text: string;
  offset: number;
  next: number;
  size: number;
}

export interface TaskText {
  text: string;
  version?: number;
  source?: string | null;
  dialect?: string | null;
  /** An edit that waits for the run to take it. */
  pending?: string | null;
}

export interface Rules {
  text: string;
  rules: { text: string }[];
  notes: string;
}

export interface FileEntry {
  name: string;
  kind: "file" | "folder" | "link";
  size?: number | null;
}

export interface FileText {
  path: string;
  text: string;
  size?: number;
  cut?: boolean;
}

export interface DiffAnswer {
  patch: string;
  /** Whether it was too long to be sent whole. */
  cut?: boolean;
  from?: string | null;
  to?: string | null;
}

/** A way to take the result of a run. */
export interface Way {
  kind: "apply" | "branch" | "push" | "pr";
  possible: boolean;
  why?: string | null;
  /** The folder, branch or URL where the result goes. */
  target: string;
  /** Files of the checkout whose own changes conflict. */
  conflicts: string[];
}

export interface ResultAnswer {
  commit: string | null;
  files: { path: string }[];
  ways: Way[];
  pr_draft: { title: string; body: string };
  pr_url?: string | null;
}

export interface TakeBody {
  kind: Way["kind"];
  branch?: string;
  title?: string;
  body?: string;
}

export interface Taken {
  outcome: "applied" | "already_there" | "started";
  files: string[];
}

export interface DiagnosisAnswer {
  report: Report | null;
  markdown?: string | null;
  /** After how many iterations. */
  at?: number | null;
  by?: string | null;
  /** Controls that applying it would send. */
  controls?: string[];
}

export interface SandboxAnswer {
  provider?: string | null;
  isolation?: string | null;
  network?: string | null;
  place?: string | null;
  workspace?: string | null;
  image?: string | null;
  resources?: Record<string, unknown> | null;
  sandboxes?: { provider: string; id: string; rests: boolean }[];
  previews?: { port: number; url: string }[];
  refused?: string[];
  screenshots?: string[];
  driver?: { pid: number; since?: string | null } | null;
}

export interface Artifact {
  name: string;
  size?: number;
  kind?: "text" | "image" | "other";
}

export interface Costs {
  since?: string;
  by: string;
  rows: { name: string; runs: number; sessions: number; cost_usd: number | null; tokens: number | null; unknown_sessions: number }[];
  cost_usd: number | null;
}

export interface AuditEntry {
  at: string;
  who: string;
  action: string;
  run?: string | null;
  detail?: string | null;
  /** The address that it came from. */
  from?: string | null;
}

export interface Secret {
  name: string;
  set: boolean;
  source?: string | null;
}

/** A worker as the server lists it. */
export interface Worker {
  id: string;
  labels: string[];
  capacity: number;
  runs: number;
  version: string;
  load: number;
  health: string;
  silent: number | null;
  draining: boolean;
  revoked: boolean;
}

export interface Person {
  name: string;
  role: Role;
  created_at?: string | null;
  last_used?: string | null;
}

/** An intervention, as the control inbox takes it. */
export type Control =
  | { control: "pause" | "resume" | "rotate" | "stop" | "cancel" | "approve" | "diagnose" | "apply" }
  | { control: "skip"; agent?: string }
  | { control: "cooldown"; agent: string; seconds: number }
  | { control: "model"; model?: string; agent?: string; always?: boolean }
  | { control: "budget"; max_iterations?: number; max_seconds?: number; max_cost_usd?: number; max_tokens?: number }
  | { control: "note" | "guardrail" | "nudge"; text: string };
