// Made by `npm run types` from schemas/receipt.schema.json. Do not edit.

/**
 * How a session ended.
 *
 * This interface was referenced by `Receipt`'s JSON-Schema
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
 * SHA-256 of some bytes, as 64 hex digits.
 *
 * This interface was referenced by `Receipt`'s JSON-Schema
 * via the `definition` "digest".
 */
export type Digest = string;

/**
 * What one iteration used, did and was judged to be. Readers must accept keys that they do not know.
 */
export interface Receipt {
  /**
   * The agent.
   */
  agent: string;
  /**
   * Its try.
   */
  attempt: number;
  /**
   * Results of the verifiers that ran.
   */
  checks: CheckResult[];
  /**
   * The work commit, if anything changed.
   */
  commit?: string | null;
  /**
   * How the cost is known.
   */
  cost_basis?: "reported" | "estimated" | "unknown";
  /**
   * Cost in USD, as far as it is known: `null` if unknown, and a lower bound if `cost_basis` is `unknown`.
   */
  cost_usd?: number | null;
  /**
   * How the session ended.
   */
  end?: SessionEnd | null;
  /**
   * When it was judged.
   */
  ended_at: string;
  /**
   * The exit code, if any.
   */
  exit_code?: number | null;
  /**
   * Files changed.
   */
  files_changed: number;
  /**
   * Number of the iteration.
   */
  iteration: number;
  /**
   * Lines added.
   */
  lines_added: number;
  /**
   * Lines removed.
   */
  lines_removed: number;
  /**
   * The final message in one line.
   */
  message: string;
  /**
   * The model reported by the agent, else the requested one.
   */
  model?: string | null;
  /**
   * Whether the final message contained the promise.
   */
  promised: boolean;
  /**
   * Digest of the prompt.
   */
  prompt: string;
  /**
   * Protected paths that were changed.
   */
  protected_changed: ProtectedChange[];
  /**
   * The run.
   */
  run_id: string;
  /**
   * Savings by cache reads.
   */
  saved_usd?: number | null;
  /**
   * How long the session took.
   */
  session_ms: number;
  /**
   * When it began.
   */
  started_at: string;
  /**
   * Tokens of the session, if known.
   */
  tokens?: Tokens | null;
  /**
   * An estimate of the sandboxes' cost so far.
   */
  total_compute_usd?: number;
  /**
   * The known part of the run's cost so far.
   */
  total_cost_usd?: number | null;
  /**
   * Tokens of the run so far.
   */
  total_tokens: Tokens | null;
  /**
   * The tree after the iteration.
   */
  tree?: string | null;
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
  /**
   * Format version.
   */
  version: 1;
}
/**
 * The result of one verifier on one tree.
 *
 * This interface was referenced by `Receipt`'s JSON-Schema
 * via the `definition` "check_result".
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
 * How a protected path differs from the start of the run.
 *
 * This interface was referenced by `Receipt`'s JSON-Schema
 * via the `definition` "protected_change".
 */
export interface ProtectedChange {
  /**
   * What happened to it.
   */
  change: "changed" | "removed" | "added";
  /**
   * The path.
   */
  path: string;
}
/**
 * Tokens of one or more sessions. `input` excludes cache reads and writes.
 *
 * This interface was referenced by `Receipt`'s JSON-Schema
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
 * Tests as counted by a runner.
 *
 * This interface was referenced by `Receipt`'s JSON-Schema
 * via the `definition` "test_counts".
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
