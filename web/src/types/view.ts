// Made by `npm run types` from schemas/view.schema.json. Do not edit.

/**
 * SHA-256 of some bytes, as 64 hex digits.
 *
 * This interface was referenced by `RunView`'s JSON-Schema
 * via the `definition` "digest".
 */
export type Digest = string;
/**
 * How a session ended.
 *
 * This interface was referenced by `RunView`'s JSON-Schema
 * via the `definition` "session_end".
 */
export type SessionEnd =
  | {
      how: "completed";
    }
  | {
      how: "empty";
    }
  | {
      how: "failed";
      /**
       * As text.
       */
      reason: string;
    }
  | {
      how: "timed_out";
    }
  | {
      how: "idle_timed_out";
    }
  | {
      how: "rate_limited";
      /**
       * The provider's message.
       */
      reason: string;
      /**
       * When it ends, if known.
       */
      reset_at?: string;
    }
  | {
      how: "overloaded";
      /**
       * As text.
       */
      reason: string;
    }
  | {
      how: "unreachable";
      /**
       * As text.
       */
      reason: string;
    }
  | {
      how: "auth";
      /**
       * As text.
       */
      reason: string;
    }
  | {
      how: "billing";
      /**
       * As text.
       */
      reason: string;
    }
  | {
      how: "context_too_long";
      /**
       * As text.
       */
      reason: string;
    }
  | {
      how: "refused";
      /**
       * As text.
       */
      reason: string;
    }
  | {
      how: "unfinished";
      /**
       * As text.
       */
      reason: string;
    }
  | {
      /**
       * Why.
       */
      cause: "cancelled" | "suspended" | "rotated" | "skipped" | "hopeless" | "budget";
      how: "stopped";
    }
  | {
      how: "interrupted";
    };

/**
 * What is known of a run at one moment. Readers must accept keys that they do not know.
 */
export interface RunView {
  /**
   * The agents.
   */
  agents: AgentView[];
  best?: BestNumber;
  /**
   * The branch with the work, if any.
   */
  branch?: string;
  /**
   * The budgets.
   */
  budgets: BudgetView[];
  /**
   * The checks, in the order of the configuration.
   */
  checks: CheckView[];
  /**
   * When it was requested.
   */
  created_at: string;
  /**
   * The criteria of the task, in order.
   */
  criteria: CriterionView[];
  current?: CurrentView;
  /**
   * When the run must end, if set.
   */
  deadline?: string;
  /**
   * Whether a process drives it.
   */
  driven: boolean;
  /**
   * Wall time since the start, including waits.
   */
  elapsed_seconds: number;
  finished?: FinishedView;
  /**
   * The latest finished iterations, the newest last.
   */
  history: IterationView[];
  /**
   * The number of finished iterations; `history` has the latest.
   */
  iterations: number;
  /**
   * When something last happened.
   */
  last_event_at: string;
  /**
   * The score of the last iteration.
   */
  loop_score: number;
  needs?: NeedsView;
  /**
   * What you can do next, as a command; absent if nothing needs doing.
   */
  next?: string;
  /**
   * What it is doing, in one sentence.
   */
  now: string;
  /**
   * The user's folder that it was started from.
   */
  origin: string;
  /**
   * Whether it is unfinished, without a driver and without a pending question.
   */
  orphaned: boolean;
  pr?: PrView;
  proof?: ProofView;
  /**
   * The ref with the work: its branch's, or one of the engine's.
   */
  ref?: string;
  /**
   * The run.
   */
  run_id: string;
  /**
   * The last event included.
   */
  seq: number;
  setup_failed?: SetupView;
  spent: SpentView;
  /**
   * The status.
   */
  status:
    | "queued"
    | "preparing"
    | "working"
    | "verifying"
    | "waiting"
    | "paused"
    | "interrupted"
    | "needs you"
    | "proving"
    | "publishing"
    | "done"
    | "failed"
    | "stopped";
  /**
   * The task's title.
   */
  title: string;
  wait?: WaitView;
  /**
   * Time spent at work: sessions, checks, final checks.
   */
  working_seconds: number;
  /**
   * The folder of the run's files, as the user knows it.
   */
  workspace: string;
}
/**
 * An agent of the run.
 *
 * This interface was referenced by `RunView`'s JSON-Schema
 * via the `definition` "agent_view".
 */
export interface AgentView {
  /**
   * How the cost is known.
   */
  cost_basis?: "reported" | "estimated" | "unknown";
  /**
   * Cost in USD, as far as it is known: `null` if unknown, and a lower bound if `cost_basis` is `unknown`.
   */
  cost_usd?: number | null;
  /**
   * The requested model, if any.
   */
  model?: string;
  /**
   * The name.
   */
  name: string;
  /**
   * Why it rests or was dropped.
   */
  reason?: string;
  /**
   * Its sessions.
   */
  sessions: number;
  /**
   * Its state.
   */
  standing: "free" | "working" | "resting" | "dropped";
  /**
   * Their tokens.
   */
  tokens: Tokens | null;
  /**
   * When its rest ends.
   */
  until?: string;
}
/**
 * Tokens of one or more sessions. `input` excludes cache reads and writes.
 *
 * This interface was referenced by `RunView`'s JSON-Schema
 * via the `definition` "tokens".
 */
export interface Tokens {
  /**
   * Input tokens written to a cache.
   */
  cache_write?: number;
  /**
   * Input tokens served from a cache.
   */
  cached?: number;
  /**
   * Fresh input tokens.
   */
  input: number;
  /**
   * Output tokens, including reasoning.
   */
  output: number;
}
/**
 * The best number so far, if the run should improve one.
 */
export interface BestNumber {
  /**
   * The iteration that reached it; 0 is the start.
   */
  iteration: number;
  /**
   * The check that measures it.
   */
  name: string;
  /**
   * The spread of the measurements.
   */
  noise?: number;
  /**
   * Whether higher is better.
   */
  rises: boolean;
  /**
   * The requested target.
   */
  target?: number;
  /**
   * The number; the median of several measurements.
   */
  value: number;
}
/**
 * How much of a budget is used.
 *
 * This interface was referenced by `RunView`'s JSON-Schema
 * via the `definition` "budget_view".
 */
export interface BudgetView {
  /**
   * The kind of budget.
   */
  budget: "iterations" | "time" | "cost" | "tokens";
  /**
   * The limit in the same unit.
   */
  limit: number;
  /**
   * The used share; 1 is all of it.
   */
  share: number;
  /**
   * Used: iterations, seconds, USD or tokens; `null` if unknown.
   */
  used?: number | null;
}
/**
 * A check and its last result.
 *
 * This interface was referenced by `RunView`'s JSON-Schema
 * via the `definition` "check_view".
 */
export interface CheckView {
  /**
   * The command, in one line.
   */
  command: string;
  /**
   * Whether that result is for the latest recorded tree.
   */
  current_tree: boolean;
  last?: CheckResult;
  /**
   * Its name: the id of a criterion, or the name of a verifier.
   */
  name: string;
  refused?: CheckRefusal;
  /**
   * Whether it must pass.
   */
  required: boolean;
}
/**
 * Its last result; absent before its first run.
 */
export interface CheckResult {
  /**
   * How long it took.
   */
  duration_ms: number;
  /**
   * Exit code, if the process exited.
   */
  exit_code?: number;
  /**
   * Names of failing tests, if the runner is known and names them.
   */
  failing?: string[];
  /**
   * Its last output lines, if it didn't pass.
   */
  last_lines?: string[];
  /**
   * Its log, relative to the run's folder.
   */
  log: string;
  /**
   * Digest of the log.
   */
  log_digest: string;
  /**
   * The verifier.
   */
  name: string;
  /**
   * Whether it passed.
   */
  passed: boolean;
  tests?: TestCounts;
  /**
   * The judged tree: another tree voids the result.
   */
  tree: string;
  /**
   * The reason if it failed: "exit code 1", "no test was executed".
   */
  why?: string;
}
/**
 * Tests that a known runner reported.
 */
export interface TestCounts {
  /**
   * Failed.
   */
  failed: number;
  /**
   * Passed.
   */
  passed: number;
}
/**
 * What the final check said about that tree, if it rejected it.
 */
export interface CheckRefusal {
  /**
   * Why the final check rejected the tree, if this check wasn't the reason.
   */
  reasons?: string[];
  result?: CheckResult1;
}
/**
 * Its result in the final check, if it failed there.
 */
export interface CheckResult1 {
  /**
   * How long it took.
   */
  duration_ms: number;
  /**
   * Exit code, if the process exited.
   */
  exit_code?: number;
  /**
   * Names of failing tests, if the runner is known and names them.
   */
  failing?: string[];
  /**
   * Its last output lines, if it didn't pass.
   */
  last_lines?: string[];
  /**
   * Its log, relative to the run's folder.
   */
  log: string;
  /**
   * Digest of the log.
   */
  log_digest: string;
  /**
   * The verifier.
   */
  name: string;
  /**
   * Whether it passed.
   */
  passed: boolean;
  tests?: TestCounts;
  /**
   * The judged tree: another tree voids the result.
   */
  tree: string;
  /**
   * The reason if it failed: "exit code 1", "no test was executed".
   */
  why?: string;
}
/**
 * A criterion of the task.
 *
 * This interface was referenced by `RunView`'s JSON-Schema
 * via the `definition` "criterion_view".
 */
export interface CriterionView {
  /**
   * How it is checked.
   */
  check: string;
  /**
   * Whether an agent claims that it is met.
   */
  claimed: boolean;
  /**
   * Unique in its task.
   */
  id: string;
  last?: CheckResult2;
  /**
   * Whether the engine's checks confirm it.
   */
  met: boolean;
  /**
   * The milestone it belongs to.
   */
  milestone?: string;
  /**
   * What must be true, in the task's words.
   */
  text: string;
}
/**
 * The last result of its check, if it ran.
 */
export interface CheckResult2 {
  /**
   * How long it took.
   */
  duration_ms: number;
  /**
   * Exit code, if the process exited.
   */
  exit_code?: number;
  /**
   * Names of failing tests, if the runner is known and names them.
   */
  failing?: string[];
  /**
   * Its last output lines, if it didn't pass.
   */
  last_lines?: string[];
  /**
   * Its log, relative to the run's folder.
   */
  log: string;
  /**
   * Digest of the log.
   */
  log_digest: string;
  /**
   * The verifier.
   */
  name: string;
  /**
   * Whether it passed.
   */
  passed: boolean;
  tests?: TestCounts;
  /**
   * The judged tree: another tree voids the result.
   */
  tree: string;
  /**
   * The reason if it failed: "exit code 1", "no test was executed".
   */
  why?: string;
}
/**
 * The active session.
 */
export interface CurrentView {
  /**
   * The agent.
   */
  agent: string;
  /**
   * Its try.
   */
  attempt: number;
  /**
   * Number of the iteration.
   */
  iteration: number;
  /**
   * The model, if chosen.
   */
  model?: string;
  /**
   * The role.
   */
  role?: "builder" | "reviewer" | "tester" | "docs";
  /**
   * When it began.
   */
  started_at: string;
}
/**
 * The end.
 */
export interface FinishedView {
  /**
   * When.
   */
  at: string;
  /**
   * Why.
   */
  reason:
    | "completed"
    | "max_iterations"
    | "max_cost"
    | "max_tokens"
    | "timeout"
    | "stuck"
    | "no_change"
    | "needs_human"
    | "stopped"
    | "cancelled"
    | "suspended"
    | "error";
  /**
   * One sentence.
   */
  summary: string;
}
/**
 * A finished iteration.
 *
 * This interface was referenced by `RunView`'s JSON-Schema
 * via the `definition` "iteration_view".
 */
export interface IterationView {
  /**
   * Lines added.
   */
  added: number;
  /**
   * The agent.
   */
  agent: string;
  /**
   * The work commit, if anything changed.
   */
  commit?: string;
  /**
   * How the cost is known.
   */
  cost_basis?: "reported" | "estimated" | "unknown";
  /**
   * Cost in USD, as far as it is known: `null` if unknown, and a lower bound if `cost_basis` is `unknown`.
   */
  cost_usd?: number | null;
  /**
   * How long the session took.
   */
  duration_ms: number;
  /**
   * How the session ended.
   */
  end:
    | {
        how: "completed";
      }
    | {
        how: "empty";
      }
    | {
        how: "failed";
        /**
         * As text.
         */
        reason: string;
      }
    | {
        how: "timed_out";
      }
    | {
        how: "idle_timed_out";
      }
    | {
        how: "rate_limited";
        /**
         * The provider's message.
         */
        reason: string;
        /**
         * When it ends, if known.
         */
        reset_at?: string;
      }
    | {
        how: "overloaded";
        /**
         * As text.
         */
        reason: string;
      }
    | {
        how: "unreachable";
        /**
         * As text.
         */
        reason: string;
      }
    | {
        how: "auth";
        /**
         * As text.
         */
        reason: string;
      }
    | {
        how: "billing";
        /**
         * As text.
         */
        reason: string;
      }
    | {
        how: "context_too_long";
        /**
         * As text.
         */
        reason: string;
      }
    | {
        how: "refused";
        /**
         * As text.
         */
        reason: string;
      }
    | {
        how: "unfinished";
        /**
         * As text.
         */
        reason: string;
      }
    | {
        /**
         * Why.
         */
        cause: "cancelled" | "suspended" | "rotated" | "skipped" | "hopeless" | "budget";
        how: "stopped";
      }
    | {
        how: "interrupted";
      };
  /**
   * When it ended.
   */
  ended_at: string;
  /**
   * Changed files.
   */
  files: number;
  /**
   * Its number.
   */
  iteration: number;
  /**
   * The score.
   */
  loop_score: number;
  /**
   * Its final message in one line.
   */
  message: string;
  /**
   * Lines removed.
   */
  removed: number;
  tests?: TestCounts1;
  /**
   * The verdict.
   */
  verdict:
    | "candidate"
    | "false_promise"
    | "checks_fail"
    | "not_promised"
    | "no_change"
    | "protected_changed"
    | "session_failed";
}
/**
 * Tests, summed over the checks that report them.
 */
export interface TestCounts1 {
  /**
   * Failed.
   */
  failed: number;
  /**
   * Passed.
   */
  passed: number;
}
/**
 * The question for the user.
 */
export interface NeedsView {
  /**
   * What you need to know for the answer, line by line.
   */
  details?: string[];
  /**
   * As text.
   */
  message: string;
  /**
   * The commands that answer it.
   */
  next: string;
  /**
   * Why.
   */
  reason:
    | "stuck"
    | "refs_moved"
    | "tampered"
    | "agent_asks"
    | "publish"
    | "overlap"
    | "checks"
    | "review"
    | "setup"
    | "tests_changed";
}
/**
 * The pull request.
 */
export interface PrView {
  /**
   * Whether it is a draft.
   */
  draft: boolean;
  /**
   * Its number; absent if only its URL is known.
   */
  number?: number;
  /**
   * Its web page.
   */
  url: string;
}
/**
 * The final check.
 */
export interface ProofView {
  /**
   * Whether it runs in a clean checkout.
   */
  clean: boolean;
  /**
   * The judged commit.
   */
  commit: string;
  /**
   * What failed without the work and passes with it, one line each.
   */
  difference?: string[];
  /**
   * What didn't pass.
   */
  failed?: string[];
  /**
   * Changes of the harness, one line each.
   */
  harness?: string[];
  /**
   * The headline, the same on every surface.
   */
  headline: string;
  /**
   * The strength of the result, if it passed.
   */
  level?: "already_true" | "unverified" | "own_tests" | "independent";
  /**
   * Why the level isn't higher.
   */
  level_reason?: string;
  /**
   * Whether it is finished.
   */
  over: boolean;
  /**
   * Whether everything passed.
   */
  passed: boolean;
  /**
   * Whether the checks were watched.
   */
  watched?: "watched" | "not_watched";
}
/**
 * The setup that failed before the first session, until a final check has passed it.
 */
export interface SetupView {
  /**
   * The command.
   */
  command: string;
  /**
   * Its last output lines.
   */
  last_lines?: string[];
  /**
   * Its log, relative to the run's folder.
   */
  log?: string;
}
/**
 * Money, tokens, sandboxes.
 */
export interface SpentView {
  /**
   * An estimate of the sandboxes' cost; not part of `cost_usd`.
   */
  compute_usd?: number;
  /**
   * How the cost is known.
   */
  cost_basis?: "reported" | "estimated" | "unknown";
  /**
   * Cost in USD, as far as it is known: `null` if unknown, and a lower bound if `cost_basis` is `unknown`.
   */
  cost_usd?: number | null;
  /**
   * Known existing sandboxes.
   */
  sandboxes?: SandboxView[];
  /**
   * Savings by caches.
   */
  saved_usd: number;
  /**
   * Sessions, including voided ones.
   */
  sessions: number;
  /**
   * Tokens.
   */
  tokens: Tokens | null;
}
/**
 * A sandbox of the run.
 *
 * This interface was referenced by `RunView`'s JSON-Schema
 * via the `definition` "sandbox_view".
 */
export interface SandboxView {
  /**
   * The provider's id.
   */
  id: string;
  /**
   * The provider.
   */
  provider: string;
  /**
   * Whether it is stopped.
   */
  rests: boolean;
}
/**
 * The current wait.
 */
export interface WaitView {
  /**
   * Who paused it, if anyone.
   */
  paused_by?: string;
  /**
   * What it waits for.
   */
  reason: string;
  /**
   * When it began.
   */
  since: string;
  /**
   * When it ends, if known.
   */
  until?: string;
}
/**
 * The best number so far.
 *
 * This interface was referenced by `RunView`'s JSON-Schema
 * via the `definition` "best_number".
 */
export interface BestNumber1 {
  /**
   * The iteration that reached it; 0 is the start.
   */
  iteration: number;
  /**
   * The check that measures it.
   */
  name: string;
  /**
   * The spread of the measurements.
   */
  noise?: number;
  /**
   * Whether higher is better.
   */
  rises: boolean;
  /**
   * The requested target.
   */
  target?: number;
  /**
   * The number; the median of several measurements.
   */
  value: number;
}
/**
 * Why a check that may have passed in the workspace doesn't count: the final check rejected the tree.
 *
 * This interface was referenced by `RunView`'s JSON-Schema
 * via the `definition` "check_refusal".
 */
export interface CheckRefusal1 {
  /**
   * Why the final check rejected the tree, if this check wasn't the reason.
   */
  reasons?: string[];
  result?: CheckResult1;
}
/**
 * The result of one verifier on one tree.
 *
 * This interface was referenced by `RunView`'s JSON-Schema
 * via the `definition` "check_result".
 */
export interface CheckResult3 {
  /**
   * How long it took.
   */
  duration_ms: number;
  /**
   * Exit code, if the process exited.
   */
  exit_code?: number;
  /**
   * Names of failing tests, if the runner is known and names them.
   */
  failing?: string[];
  /**
   * Its last output lines, if it didn't pass.
   */
  last_lines?: string[];
  /**
   * Its log, relative to the run's folder.
   */
  log: string;
  /**
   * Digest of the log.
   */
  log_digest: string;
  /**
   * The verifier.
   */
  name: string;
  /**
   * Whether it passed.
   */
  passed: boolean;
  tests?: TestCounts;
  /**
   * The judged tree: another tree voids the result.
   */
  tree: string;
  /**
   * The reason if it failed: "exit code 1", "no test was executed".
   */
  why?: string;
}
/**
 * The active session.
 *
 * This interface was referenced by `RunView`'s JSON-Schema
 * via the `definition` "current_view".
 */
export interface CurrentView1 {
  /**
   * The agent.
   */
  agent: string;
  /**
   * Its try.
   */
  attempt: number;
  /**
   * Number of the iteration.
   */
  iteration: number;
  /**
   * The model, if chosen.
   */
  model?: string;
  /**
   * The role.
   */
  role?: "builder" | "reviewer" | "tester" | "docs";
  /**
   * When it began.
   */
  started_at: string;
}
/**
 * The end of a run.
 *
 * This interface was referenced by `RunView`'s JSON-Schema
 * via the `definition` "finished_view".
 */
export interface FinishedView1 {
  /**
   * When.
   */
  at: string;
  /**
   * Why.
   */
  reason:
    | "completed"
    | "max_iterations"
    | "max_cost"
    | "max_tokens"
    | "timeout"
    | "stuck"
    | "no_change"
    | "needs_human"
    | "stopped"
    | "cancelled"
    | "suspended"
    | "error";
  /**
   * One sentence.
   */
  summary: string;
}
/**
 * The question for the user.
 *
 * This interface was referenced by `RunView`'s JSON-Schema
 * via the `definition` "needs_view".
 */
export interface NeedsView1 {
  /**
   * What you need to know for the answer, line by line.
   */
  details?: string[];
  /**
   * As text.
   */
  message: string;
  /**
   * The commands that answer it.
   */
  next: string;
  /**
   * Why.
   */
  reason:
    | "stuck"
    | "refs_moved"
    | "tampered"
    | "agent_asks"
    | "publish"
    | "overlap"
    | "checks"
    | "review"
    | "setup"
    | "tests_changed";
}
/**
 * The pull request.
 *
 * This interface was referenced by `RunView`'s JSON-Schema
 * via the `definition` "pr_view".
 */
export interface PrView1 {
  /**
   * Whether it is a draft.
   */
  draft: boolean;
  /**
   * Its number; absent if only its URL is known.
   */
  number?: number;
  /**
   * Its web page.
   */
  url: string;
}
/**
 * The final check.
 *
 * This interface was referenced by `RunView`'s JSON-Schema
 * via the `definition` "proof_view".
 */
export interface ProofView1 {
  /**
   * Whether it runs in a clean checkout.
   */
  clean: boolean;
  /**
   * The judged commit.
   */
  commit: string;
  /**
   * What failed without the work and passes with it, one line each.
   */
  difference?: string[];
  /**
   * What didn't pass.
   */
  failed?: string[];
  /**
   * Changes of the harness, one line each.
   */
  harness?: string[];
  /**
   * The headline, the same on every surface.
   */
  headline: string;
  /**
   * The strength of the result, if it passed.
   */
  level?: "already_true" | "unverified" | "own_tests" | "independent";
  /**
   * Why the level isn't higher.
   */
  level_reason?: string;
  /**
   * Whether it is finished.
   */
  over: boolean;
  /**
   * Whether everything passed.
   */
  passed: boolean;
  /**
   * Whether the checks were watched.
   */
  watched?: "watched" | "not_watched";
}
/**
 * A setup that failed in a clean checkout of the original files, so no check ran.
 *
 * This interface was referenced by `RunView`'s JSON-Schema
 * via the `definition` "setup_view".
 */
export interface SetupView1 {
  /**
   * The command.
   */
  command: string;
  /**
   * Its last output lines.
   */
  last_lines?: string[];
  /**
   * Its log, relative to the run's folder.
   */
  log?: string;
}
/**
 * What a run has used.
 *
 * This interface was referenced by `RunView`'s JSON-Schema
 * via the `definition` "spent_view".
 */
export interface SpentView1 {
  /**
   * An estimate of the sandboxes' cost; not part of `cost_usd`.
   */
  compute_usd?: number;
  /**
   * How the cost is known.
   */
  cost_basis?: "reported" | "estimated" | "unknown";
  /**
   * Cost in USD, as far as it is known: `null` if unknown, and a lower bound if `cost_basis` is `unknown`.
   */
  cost_usd?: number | null;
  /**
   * Known existing sandboxes.
   */
  sandboxes?: SandboxView[];
  /**
   * Savings by caches.
   */
  saved_usd: number;
  /**
   * Sessions, including voided ones.
   */
  sessions: number;
  /**
   * Tokens.
   */
  tokens: Tokens | null;
}
/**
 * Tests as counted by a runner.
 *
 * This interface was referenced by `RunView`'s JSON-Schema
 * via the `definition` "test_counts".
 */
export interface TestCounts2 {
  /**
   * Failed.
   */
  failed: number;
  /**
   * Passed.
   */
  passed: number;
}
/**
 * A wait.
 *
 * This interface was referenced by `RunView`'s JSON-Schema
 * via the `definition` "wait_view".
 */
export interface WaitView1 {
  /**
   * Who paused it, if anyone.
   */
  paused_by?: string;
  /**
   * What it waits for.
   */
  reason: string;
  /**
   * When it began.
   */
  since: string;
  /**
   * When it ends, if known.
   */
  until?: string;
}
