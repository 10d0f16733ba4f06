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
       * In words.
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
       * When it ends, where that was said.
       */
      reset_at?: string;
      /**
       * In the provider's words.
       */
      reason: string;
    }
  | {
      how: "overloaded";
      /**
       * In words.
       */
      reason: string;
    }
  | {
      how: "unreachable";
      /**
       * In words.
       */
      reason: string;
    }
  | {
      how: "auth";
      /**
       * In words.
       */
      reason: string;
    }
  | {
      how: "billing";
      /**
       * In words.
       */
      reason: string;
    }
  | {
      how: "context_too_long";
      /**
       * In words.
       */
      reason: string;
    }
  | {
      how: "refused";
      /**
       * In words.
       */
      reason: string;
    }
  | {
      how: "unfinished";
      /**
       * In words.
       */
      reason: string;
    }
  | {
      how: "stopped";
      /**
       * Why.
       */
      cause: "cancelled" | "suspended" | "rotated" | "skipped" | "hopeless" | "budget";
    }
  | {
      how: "interrupted";
    };

/**
 * What is known of a run at one moment. Readers must accept keys that they do not know.
 */
export interface RunView {
  /**
   * The run.
   */
  run_id: string;
  /**
   * The task in a few words.
   */
  title: string;
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
   * What it does at this moment, in one sentence.
   */
  now: string;
  /**
   * What a person can do next, as a command; absent where nothing is to be done.
   */
  next?: string;
  /**
   * Whether a process drives it.
   */
  driven: boolean;
  /**
   * Unfinished, and neither a process nor a person's answer is at work on it.
   */
  orphaned: boolean;
  /**
   * The last event that is in it.
   */
  seq: number;
  /**
   * When it was asked for.
   */
  created_at: string;
  /**
   * When something last happened.
   */
  last_event_at: string;
  /**
   * Wall time since the start, waits included.
   */
  elapsed_seconds: number;
  /**
   * Time spent at work: sessions, checks, final checks.
   */
  working_seconds: number;
  current?: CurrentView;
  wait?: WaitView;
  needs?: NeedsView;
  /**
   * The criteria of the task, in its order.
   */
  criteria: CriterionView[];
  /**
   * The checks, in the order of the configuration.
   */
  checks: CheckView[];
  setup_failed?: SetupView;
  /**
   * The budgets.
   */
  budgets: BudgetView[];
  /**
   * The run ends at this instant, where one is set.
   */
  deadline?: string;
  spent: SpentView;
  /**
   * Who may work.
   */
  agents: AgentView[];
  /**
   * Finished iterations, of which the latest are in `history`.
   */
  iterations: number;
  /**
   * The latest finished iterations, the newest last.
   */
  history: IterationView[];
  /**
   * The score of the last iteration.
   */
  loop_score: number;
  best?: BestNumber;
  /**
   * The branch that holds the work, where one does.
   */
  branch?: string;
  /**
   * The ref that holds the work: of its branch, or one of the engine's own.
   */
  ref?: string;
  pr?: PrView;
  proof?: ProofView;
  finished?: FinishedView;
  /**
   * The folder of the run's files, as its user knows it.
   */
  workspace: string;
  /**
   * The user's folder that it was started from.
   */
  origin: string;
}
/**
 * The session under way.
 */
export interface CurrentView {
  /**
   * Number of the iteration.
   */
  iteration: number;
  /**
   * Its try.
   */
  attempt: number;
  /**
   * Who works.
   */
  agent: string;
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
 * The wait under way.
 */
export interface WaitView {
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
  /**
   * Who paused it, where somebody did.
   */
  paused_by?: string;
}
/**
 * What a person is asked.
 */
export interface NeedsView {
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
  /**
   * In words.
   */
  message: string;
  /**
   * How it is answered, as commands.
   */
  next: string;
  /**
   * What there is to know for the answer, line by line.
   */
  details?: string[];
}
/**
 * A criterion of the task.
 *
 * This interface was referenced by `RunView`'s JSON-Schema
 * via the `definition` "criterion_view".
 */
export interface CriterionView {
  /**
   * Unique in its task.
   */
  id: string;
  /**
   * What must be true, in the words of the task.
   */
  text: string;
  /**
   * The milestone it belongs to.
   */
  milestone?: string;
  /**
   * How it is checked, in words.
   */
  check: string;
  /**
   * Whether an agent says that it is met.
   */
  claimed: boolean;
  /**
   * Whether the engine's own checks say so.
   */
  met: boolean;
  last?: CheckResult;
}
/**
 * The last result of its own check, where it has one that ran.
 */
export interface CheckResult {
  /**
   * The verifier.
   */
  name: string;
  /**
   * The tree that it judged: another tree voids the result.
   */
  tree: string;
  /**
   * Whether it passed.
   */
  passed: boolean;
  /**
   * In words, where it did not: "exit code 1", "no test was executed".
   */
  why?: string;
  /**
   * Exit code, if it ended by itself.
   */
  exit_code?: number;
  /**
   * How long it took.
   */
  duration_ms: number;
  tests?: TestCounts;
  /**
   * Its log, relative to the run's folder.
   */
  log: string;
  /**
   * Digest of the log.
   */
  log_digest: string;
  /**
   * Names of tests that failed, where the runner is known and names them.
   */
  failing?: string[];
  /**
   * The last lines that it printed, where it did not pass.
   */
  last_lines?: string[];
}
/**
 * Tests that a known runner reported.
 */
export interface TestCounts {
  /**
   * Passed.
   */
  passed: number;
  /**
   * Failed.
   */
  failed: number;
}
/**
 * A check and its last result.
 *
 * This interface was referenced by `RunView`'s JSON-Schema
 * via the `definition` "check_view".
 */
export interface CheckView {
  /**
   * Its name: the id of a criterion, or the name of a verifier.
   */
  name: string;
  /**
   * What is run, in one line.
   */
  command: string;
  /**
   * Whether it must pass.
   */
  required: boolean;
  last?: CheckResult1;
  /**
   * Whether that result is of the tree as it was recorded last.
   */
  current_tree: boolean;
  refused?: CheckRefusal;
}
/**
 * Its last result; absent before its first run.
 */
export interface CheckResult1 {
  /**
   * The verifier.
   */
  name: string;
  /**
   * The tree that it judged: another tree voids the result.
   */
  tree: string;
  /**
   * Whether it passed.
   */
  passed: boolean;
  /**
   * In words, where it did not: "exit code 1", "no test was executed".
   */
  why?: string;
  /**
   * Exit code, if it ended by itself.
   */
  exit_code?: number;
  /**
   * How long it took.
   */
  duration_ms: number;
  tests?: TestCounts;
  /**
   * Its log, relative to the run's folder.
   */
  log: string;
  /**
   * Digest of the log.
   */
  log_digest: string;
  /**
   * Names of tests that failed, where the runner is known and names them.
   */
  failing?: string[];
  /**
   * The last lines that it printed, where it did not pass.
   */
  last_lines?: string[];
}
/**
 * What the final check said of that tree, where it did not accept it.
 */
export interface CheckRefusal {
  result?: CheckResult2;
  /**
   * Why the final check did not accept the tree, where that was not this check.
   */
  reasons?: string[];
}
/**
 * Its result in the final check, where it did not pass there.
 */
export interface CheckResult2 {
  /**
   * The verifier.
   */
  name: string;
  /**
   * The tree that it judged: another tree voids the result.
   */
  tree: string;
  /**
   * Whether it passed.
   */
  passed: boolean;
  /**
   * In words, where it did not: "exit code 1", "no test was executed".
   */
  why?: string;
  /**
   * Exit code, if it ended by itself.
   */
  exit_code?: number;
  /**
   * How long it took.
   */
  duration_ms: number;
  tests?: TestCounts;
  /**
   * Its log, relative to the run's folder.
   */
  log: string;
  /**
   * Digest of the log.
   */
  log_digest: string;
  /**
   * Names of tests that failed, where the runner is known and names them.
   */
  failing?: string[];
  /**
   * The last lines that it printed, where it did not pass.
   */
  last_lines?: string[];
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
   * Used: iterations, seconds, USD or tokens.
   */
  used: number;
  /**
   * The limit in the same unit.
   */
  limit: number;
  /**
   * The share that is used, 1 being all of it.
   */
  share: number;
}
/**
 * Money, tokens, sandboxes.
 */
export interface SpentView {
  /**
   * Money.
   */
  cost_usd: number;
  /**
   * How it is known.
   */
  cost_basis: "reported" | "estimated" | "unknown";
  /**
   * What reading from caches saved.
   */
  saved_usd: number;
  /**
   * An estimate of what the run's sandboxes cost; not part of `cost_usd`.
   */
  compute_usd?: number;
  tokens: Tokens;
  /**
   * Sessions, those that do not count included.
   */
  sessions: number;
  /**
   * Sandboxes that exist, as far as is known.
   */
  sandboxes?: SandboxView[];
}
/**
 * Tokens.
 */
export interface Tokens {
  /**
   * Fresh input tokens.
   */
  input: number;
  /**
   * Output tokens, reasoning included.
   */
  output: number;
  /**
   * Input tokens served from a cache.
   */
  cached?: number;
  /**
   * Input tokens written to a cache.
   */
  cache_write?: number;
}
/**
 * A sandbox of the run.
 *
 * This interface was referenced by `RunView`'s JSON-Schema
 * via the `definition` "sandbox_view".
 */
export interface SandboxView {
  /**
   * Who made it.
   */
  provider: string;
  /**
   * The provider's id.
   */
  id: string;
  /**
   * Whether it rests.
   */
  rests: boolean;
}
/**
 * Who may work.
 *
 * This interface was referenced by `RunView`'s JSON-Schema
 * via the `definition` "agent_view".
 */
export interface AgentView {
  /**
   * The name.
   */
  name: string;
  /**
   * The model that it is asked to use, where one was chosen.
   */
  model?: string;
  /**
   * How it stands.
   */
  standing: "free" | "working" | "resting" | "dropped";
  /**
   * When its rest ends.
   */
  until?: string;
  /**
   * Why it rests or takes no further part.
   */
  reason?: string;
  /**
   * Its sessions.
   */
  sessions: number;
  /**
   * What they cost.
   */
  cost_usd: number;
  /**
   * How that is known.
   */
  cost_basis: "reported" | "estimated" | "unknown";
  tokens: Tokens1;
}
/**
 * Their tokens.
 */
export interface Tokens1 {
  /**
   * Fresh input tokens.
   */
  input: number;
  /**
   * Output tokens, reasoning included.
   */
  output: number;
  /**
   * Input tokens served from a cache.
   */
  cached?: number;
  /**
   * Input tokens written to a cache.
   */
  cache_write?: number;
}
/**
 * A finished iteration.
 *
 * This interface was referenced by `RunView`'s JSON-Schema
 * via the `definition` "iteration_view".
 */
export interface IterationView {
  /**
   * Number.
   */
  iteration: number;
  /**
   * Who worked.
   */
  agent: string;
  /**
   * The judgement.
   */
  verdict:
    "candidate" | "false_promise" | "checks_fail" | "not_promised" | "protected_changed" | "session_failed";
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
         * In words.
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
         * When it ends, where that was said.
         */
        reset_at?: string;
        /**
         * In the provider's words.
         */
        reason: string;
      }
    | {
        how: "overloaded";
        /**
         * In words.
         */
        reason: string;
      }
    | {
        how: "unreachable";
        /**
         * In words.
         */
        reason: string;
      }
    | {
        how: "auth";
        /**
         * In words.
         */
        reason: string;
      }
    | {
        how: "billing";
        /**
         * In words.
         */
        reason: string;
      }
    | {
        how: "context_too_long";
        /**
         * In words.
         */
        reason: string;
      }
    | {
        how: "refused";
        /**
         * In words.
         */
        reason: string;
      }
    | {
        how: "unfinished";
        /**
         * In words.
         */
        reason: string;
      }
    | {
        how: "stopped";
        /**
         * Why.
         */
        cause: "cancelled" | "suspended" | "rotated" | "skipped" | "hopeless" | "budget";
      }
    | {
        how: "interrupted";
      };
  /**
   * Its final message in one line.
   */
  message: string;
  /**
   * Changed files.
   */
  files: number;
  /**
   * Lines added.
   */
  added: number;
  /**
   * Lines removed.
   */
  removed: number;
  /**
   * Money, where it is known.
   */
  cost_usd?: number;
  /**
   * How long the session took.
   */
  duration_ms: number;
  /**
   * The score.
   */
  loop_score: number;
  tests?: TestCounts1;
  /**
   * Work commit, where something changed.
   */
  commit?: string;
  /**
   * When it ended.
   */
  ended_at: string;
}
/**
 * Tests, summed over the checks that report them.
 */
export interface TestCounts1 {
  /**
   * Passed.
   */
  passed: number;
  /**
   * Failed.
   */
  failed: number;
}
/**
 * The best number so far, where the run is to improve one.
 */
export interface BestNumber {
  /**
   * The check that measures it.
   */
  name: string;
  /**
   * The number; the median where it was measured several times.
   */
  value: number;
  /**
   * How far the measurements lie apart.
   */
  noise?: number;
  /**
   * What is asked for.
   */
  target?: number;
  /**
   * Whether more of it is better.
   */
  rises: boolean;
  /**
   * The iteration that reached it; 0 is the start.
   */
  iteration: number;
}
/**
 * The pull request.
 */
export interface PrView {
  /**
   * Its number; absent where only its address is known.
   */
  number?: number;
  /**
   * Where people read it.
   */
  url: string;
  /**
   * Not yet for review.
   */
  draft: boolean;
}
/**
 * The final check.
 */
export interface ProofView {
  /**
   * The commit it judges.
   */
  commit: string;
  /**
   * Whether it is over.
   */
  over: boolean;
  /**
   * Whether everything held.
   */
  passed: boolean;
  /**
   * Whether it runs in a clean checkout.
   */
  clean: boolean;
  /**
   * What did not hold.
   */
  failed?: string[];
  /**
   * Changes to tests that a person should look at.
   */
  weakened: number;
  /**
   * Who decided what a pass means, once it has passed.
   */
  level?: "independent" | "own_tests";
  /**
   * Whether the checks were watched.
   */
  watched?: "watched" | "not_watched";
  /**
   * What lowers the level, one line each.
   */
  harness?: string[];
}
/**
 * The end.
 */
export interface FinishedView {
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
    | "needs_human"
    | "stopped"
    | "cancelled"
    | "suspended"
    | "error";
  /**
   * In one sentence.
   */
  summary: string;
  /**
   * When.
   */
  at: string;
}
/**
 * The session under way.
 *
 * This interface was referenced by `RunView`'s JSON-Schema
 * via the `definition` "current_view".
 */
export interface CurrentView1 {
  /**
   * Number of the iteration.
   */
  iteration: number;
  /**
   * Its try.
   */
  attempt: number;
  /**
   * Who works.
   */
  agent: string;
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
 * A wait.
 *
 * This interface was referenced by `RunView`'s JSON-Schema
 * via the `definition` "wait_view".
 */
export interface WaitView1 {
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
  /**
   * Who paused it, where somebody did.
   */
  paused_by?: string;
}
/**
 * What a person is asked.
 *
 * This interface was referenced by `RunView`'s JSON-Schema
 * via the `definition` "needs_view".
 */
export interface NeedsView1 {
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
  /**
   * In words.
   */
  message: string;
  /**
   * How it is answered, as commands.
   */
  next: string;
  /**
   * What there is to know for the answer, line by line.
   */
  details?: string[];
}
/**
 * The result of one verifier on one tree.
 *
 * This interface was referenced by `RunView`'s JSON-Schema
 * via the `definition` "check_result".
 */
export interface CheckResult3 {
  /**
   * The verifier.
   */
  name: string;
  /**
   * The tree that it judged: another tree voids the result.
   */
  tree: string;
  /**
   * Whether it passed.
   */
  passed: boolean;
  /**
   * In words, where it did not: "exit code 1", "no test was executed".
   */
  why?: string;
  /**
   * Exit code, if it ended by itself.
   */
  exit_code?: number;
  /**
   * How long it took.
   */
  duration_ms: number;
  tests?: TestCounts;
  /**
   * Its log, relative to the run's folder.
   */
  log: string;
  /**
   * Digest of the log.
   */
  log_digest: string;
  /**
   * Names of tests that failed, where the runner is known and names them.
   */
  failing?: string[];
  /**
   * The last lines that it printed, where it did not pass.
   */
  last_lines?: string[];
}
/**
 * Tests as a runner counted them.
 *
 * This interface was referenced by `RunView`'s JSON-Schema
 * via the `definition` "test_counts".
 */
export interface TestCounts2 {
  /**
   * Passed.
   */
  passed: number;
  /**
   * Failed.
   */
  failed: number;
}
/**
 * Why a check that may have passed in the workspace does not count: the final check did not accept the tree.
 *
 * This interface was referenced by `RunView`'s JSON-Schema
 * via the `definition` "check_refusal".
 */
export interface CheckRefusal1 {
  result?: CheckResult2;
  /**
   * Why the final check did not accept the tree, where that was not this check.
   */
  reasons?: string[];
}
/**
 * A setup that failed in a clean checkout of the start: no check was run there.
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
   * Money.
   */
  cost_usd: number;
  /**
   * How it is known.
   */
  cost_basis: "reported" | "estimated" | "unknown";
  /**
   * What reading from caches saved.
   */
  saved_usd: number;
  /**
   * An estimate of what the run's sandboxes cost; not part of `cost_usd`.
   */
  compute_usd?: number;
  tokens: Tokens;
  /**
   * Sessions, those that do not count included.
   */
  sessions: number;
  /**
   * Sandboxes that exist, as far as is known.
   */
  sandboxes?: SandboxView[];
}
/**
 * Tokens of one or many sessions. `input` excludes what was read from or written to a cache.
 *
 * This interface was referenced by `RunView`'s JSON-Schema
 * via the `definition` "tokens".
 */
export interface Tokens2 {
  /**
   * Fresh input tokens.
   */
  input: number;
  /**
   * Output tokens, reasoning included.
   */
  output: number;
  /**
   * Input tokens served from a cache.
   */
  cached?: number;
  /**
   * Input tokens written to a cache.
   */
  cache_write?: number;
}
/**
 * The best number so far of a run that is to improve one.
 *
 * This interface was referenced by `RunView`'s JSON-Schema
 * via the `definition` "best_number".
 */
export interface BestNumber1 {
  /**
   * The check that measures it.
   */
  name: string;
  /**
   * The number; the median where it was measured several times.
   */
  value: number;
  /**
   * How far the measurements lie apart.
   */
  noise?: number;
  /**
   * What is asked for.
   */
  target?: number;
  /**
   * Whether more of it is better.
   */
  rises: boolean;
  /**
   * The iteration that reached it; 0 is the start.
   */
  iteration: number;
}
/**
 * The pull request.
 *
 * This interface was referenced by `RunView`'s JSON-Schema
 * via the `definition` "pr_view".
 */
export interface PrView1 {
  /**
   * Its number; absent where only its address is known.
   */
  number?: number;
  /**
   * Where people read it.
   */
  url: string;
  /**
   * Not yet for review.
   */
  draft: boolean;
}
/**
 * The final check.
 *
 * This interface was referenced by `RunView`'s JSON-Schema
 * via the `definition` "proof_view".
 */
export interface ProofView1 {
  /**
   * The commit it judges.
   */
  commit: string;
  /**
   * Whether it is over.
   */
  over: boolean;
  /**
   * Whether everything held.
   */
  passed: boolean;
  /**
   * Whether it runs in a clean checkout.
   */
  clean: boolean;
  /**
   * What did not hold.
   */
  failed?: string[];
  /**
   * Changes to tests that a person should look at.
   */
  weakened: number;
  /**
   * Who decided what a pass means, once it has passed.
   */
  level?: "independent" | "own_tests";
  /**
   * Whether the checks were watched.
   */
  watched?: "watched" | "not_watched";
  /**
   * What lowers the level, one line each.
   */
  harness?: string[];
}
/**
 * The end of a run.
 *
 * This interface was referenced by `RunView`'s JSON-Schema
 * via the `definition` "finished_view".
 */
export interface FinishedView1 {
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
    | "needs_human"
    | "stopped"
    | "cancelled"
    | "suspended"
    | "error";
  /**
   * In one sentence.
   */
  summary: string;
  /**
   * When.
   */
  at: string;
}
