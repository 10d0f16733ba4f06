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
       * In the provider's words.
       */
      reason: string;
      /**
       * When it ends, where that was said.
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
   * Who may work.
   */
  agents: AgentView[];
  best?: BestNumber;
  /**
   * The branch that holds the work, where one does.
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
   * When it was asked for.
   */
  created_at: string;
  /**
   * The criteria of the task, in its order.
   */
  criteria: CriterionView[];
  current?: CurrentView;
  /**
   * The run ends at this instant, where one is set.
   */
  deadline?: string;
  /**
   * Whether a process drives it.
   */
  driven: boolean;
  /**
   * Wall time since the start, waits included.
   */
  elapsed_seconds: number;
  finished?: FinishedView;
  /**
   * The latest finished iterations, the newest last.
   */
  history: IterationView[];
  /**
   * Finished iterations, of which the latest are in `history`.
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
   * What a person can do next, as a command; absent where nothing is to be done.
   */
  next?: string;
  /**
   * What it does at this moment, in one sentence.
   */
  now: string;
  /**
   * The user's folder that it was started from.
   */
  origin: string;
  /**
   * Unfinished, and neither a process nor a person's answer is at work on it.
   */
  orphaned: boolean;
  pr?: PrView;
  proof?: ProofView;
  /**
   * The ref that holds the work: of its branch, or one of the engine's own.
   */
  ref?: string;
  /**
   * The run.
   */
  run_id: string;
  /**
   * The last event that is in it.
   */
  seq: number;
  setup_failed?: SetupView;
  spent: SpentView;
  /**
   * Where it stands.
   */
  status:
    | "queued"
    | "preparing"
    | "working"
    | "verifying"
    | "waiting"
    | "paused"
    | "needs you"
    | "proving"
    | "publishing"
    | "done"
    | "failed"
    | "stopped";
  /**
   * The task in a few words.
   */
  title: string;
  wait?: WaitView;
  /**
   * Time spent at work: sessions, checks, final checks.
   */
  working_seconds: number;
  /**
   * The folder of the run's files, as its user knows it.
   */
  workspace: string;
}
/**
 * Who may work.
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
   * Cost in USD, as far as it is known: `null` if nothing is, and the least that it can be if `cost_basis` is `unknown`.
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
   * Why it rests or takes no further part.
   */
  reason?: string;
  /**
   * Its sessions.
   */
  sessions: number;
  /**
   * How it stands.
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
 * Tokens of one or many sessions. `input` excludes what was read from or written to a cache.
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
   * Output tokens, reasoning included.
   */
  output: number;
}
/**
 * The best number so far, where the run is to improve one.
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
   * How far the measurements lie apart.
   */
  noise?: number;
  /**
   * Whether more of it is better.
   */
  rises: boolean;
  /**
   * The request.
   */
  target?: number;
  /**
   * The number; the median where it was measured several times.
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
   * Which.
   */
  budget: "iterations" | "time" | "cost" | "tokens";
  /**
   * The limit in the same unit.
   */
  limit: number;
  /**
   * The share that is used, 1 being all of it.
   */
  share: number;
  /**
   * Used: iterations, seconds, USD or tokens; `null` if nothing is known of it.
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
   * What is run, in one line.
   */
  command: string;
  /**
   * Whether that result is of the tree as it was recorded last.
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
   * Names of tests that failed, where the runner is known and names them.
   */
  failing?: string[];
  /**
   * The last lines that it printed, where it did not pass.
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
   * The tree that it judged: another tree voids the result.
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
 * What the final check said of that tree, where it did not accept it.
 */
export interface CheckRefusal {
  /**
   * Why the final check did not accept the tree, where that was not this check.
   */
  reasons?: string[];
  result?: CheckResult1;
}
/**
 * Its result in the final check, where it did not pass there.
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
   * Names of tests that failed, where the runner is known and names them.
   */
  failing?: string[];
  /**
   * The last lines that it printed, where it did not pass.
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
   * The tree that it judged: another tree voids the result.
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
   * Whether an agent says that it is met.
   */
  claimed: boolean;
  /**
   * Unique in its task.
   */
  id: string;
  last?: CheckResult2;
  /**
   * Whether the engine's own checks say so.
   */
  met: boolean;
  /**
   * The milestone it belongs to.
   */
  milestone?: string;
  /**
   * What must be true, in the words of the task.
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
   * Names of tests that failed, where the runner is known and names them.
   */
  failing?: string[];
  /**
   * The last lines that it printed, where it did not pass.
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
   * The tree that it judged: another tree voids the result.
   */
  tree: string;
  /**
   * The reason if it failed: "exit code 1", "no test was executed".
   */
  why?: string;
}
/**
 * The session under way.
 */
export interface CurrentView {
  /**
   * Who works.
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
   * With which model, where one was chosen.
   */
  model?: string;
  /**
   * In which role.
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
   * In one sentence.
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
   * Who worked.
   */
  agent: string;
  /**
   * Work commit, where something changed.
   */
  commit?: string;
  /**
   * How the cost is known.
   */
  cost_basis?: "reported" | "estimated" | "unknown";
  /**
   * Cost in USD, as far as it is known: `null` if nothing is, and the least that it can be if `cost_basis` is `unknown`.
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
         * In the provider's words.
         */
        reason: string;
        /**
         * When it ends, where that was said.
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
   * Number.
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
   * The judgement.
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
   * What there is to know for the answer, line by line.
   */
  details?: string[];
  /**
   * As text.
   */
  message: string;
  /**
   * How it is answered, as commands.
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
   * Not yet for review.
   */
  draft: boolean;
  /**
   * Its number; absent where only its address is known.
   */
  number?: number;
  /**
   * Where people read it.
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
   * The commit it judges.
   */
  commit: string;
  /**
   * What failed without the work and passes with it, one line each.
   */
  difference?: string[];
  /**
   * What did not hold.
   */
  failed?: string[];
  /**
   * Changes of the harness, one line each.
   */
  harness?: string[];
  /**
   * The result in the words of every surface.
   */
  headline: string;
  /**
   * What the result is worth, once it has passed.
   */
  level?: "already_true" | "unverified" | "own_tests" | "independent";
  /**
   * Why the level isn't higher.
   */
  level_reason?: string;
  /**
   * Whether it is over.
   */
  over: boolean;
  /**
   * Whether everything held.
   */
  passed: boolean;
  /**
   * Whether the checks were watched.
   */
  watched?: "watched" | "not_watched";
}
/**
 * The setup that failed before the first session, where no final check has got past it since.
 */
export interface SetupView {
  /**
   * The command.
   */
  command: string;
  /**
   * The last lines that it printed.
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
   * An estimate of what the run's sandboxes cost; not part of `cost_usd`.
   */
  compute_usd?: number;
  /**
   * How the cost is known.
   */
  cost_basis?: "reported" | "estimated" | "unknown";
  /**
   * Cost in USD, as far as it is known: `null` if nothing is, and the least that it can be if `cost_basis` is `unknown`.
   */
  cost_usd?: number | null;
  /**
   * Sandboxes that exist, as far as is known.
   */
  sandboxes?: SandboxView[];
  /**
   * What reading from caches saved.
   */
  saved_usd: number;
  /**
   * Sessions, those that do not count included.
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
   * Who made it.
   */
  provider: string;
  /**
   * Whether it rests.
   */
  rests: boolean;
}
/**
 * The wait under way.
 */
export interface WaitView {
  /**
   * Who paused it, if anyone.
   */
  paused_by?: string;
  /**
   * For what.
   */
  reason: string;
  /**
   * Since when.
   */
  since: string;
  /**
   * Until when, where that is known.
   */
  until?: string;
}
/**
 * The best number so far of a run that is to improve one.
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
   * How far the measurements lie apart.
   */
  noise?: number;
  /**
   * Whether more of it is better.
   */
  rises: boolean;
  /**
   * The request.
   */
  target?: number;
  /**
   * The number; the median where it was measured several times.
   */
  value: number;
}
/**
 * Why a check that may have passed in the workspace does not count: the final check did not accept the tree.
 *
 * This interface was referenced by `RunView`'s JSON-Schema
 * via the `definition` "check_refusal".
 */
export interface CheckRefusal1 {
  /**
   * Why the final check did not accept the tree, where that was not this check.
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
   * Names of tests that failed, where the runner is known and names them.
   */
  failing?: string[];
  /**
   * The last lines that it printed, where it did not pass.
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
   * The tree that it judged: another tree voids the result.
   */
  tree: string;
  /**
   * The reason if it failed: "exit code 1", "no test was executed".
   */
  why?: string;
}
/**
 * The session under way.
 *
 * This interface was referenced by `RunView`'s JSON-Schema
 * via the `definition` "current_view".
 */
export interface CurrentView1 {
  /**
   * Who works.
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
   * With which model, where one was chosen.
   */
  model?: string;
  /**
   * In which role.
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
   * In one sentence.
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
   * What there is to know for the answer, line by line.
   */
  details?: string[];
  /**
   * As text.
   */
  message: string;
  /**
   * How it is answered, as commands.
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
   * Not yet for review.
   */
  draft: boolean;
  /**
   * Its number; absent where only its address is known.
   */
  number?: number;
  /**
   * Where people read it.
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
   * The commit it judges.
   */
  commit: string;
  /**
   * What failed without the work and passes with it, one line each.
   */
  difference?: string[];
  /**
   * What did not hold.
   */
  failed?: string[];
  /**
   * Changes of the harness, one line each.
   */
  harness?: string[];
  /**
   * The result in the words of every surface.
   */
  headline: string;
  /**
   * What the result is worth, once it has passed.
   */
  level?: "already_true" | "unverified" | "own_tests" | "independent";
  /**
   * Why the level isn't higher.
   */
  level_reason?: string;
  /**
   * Whether it is over.
   */
  over: boolean;
  /**
   * Whether everything held.
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
   * The last lines that it printed.
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
   * An estimate of what the run's sandboxes cost; not part of `cost_usd`.
   */
  compute_usd?: number;
  /**
   * How the cost is known.
   */
  cost_basis?: "reported" | "estimated" | "unknown";
  /**
   * Cost in USD, as far as it is known: `null` if nothing is, and the least that it can be if `cost_basis` is `unknown`.
   */
  cost_usd?: number | null;
  /**
   * Sandboxes that exist, as far as is known.
   */
  sandboxes?: SandboxView[];
  /**
   * What reading from caches saved.
   */
  saved_usd: number;
  /**
   * Sessions, those that do not count included.
   */
  sessions: number;
  /**
   * Tokens.
   */
  tokens: Tokens | null;
}
/**
 * Tests as a runner counted them.
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
   * For what.
   */
  reason: string;
  /**
   * Since when.
   */
  since: string;
  /**
   * Until when, where that is known.
   */
  until?: string;
}
