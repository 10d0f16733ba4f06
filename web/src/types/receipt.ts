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
   * Format version.
   */
  version: 1;
  /**
   * The run.
   */
  run_id: string;
  /**
   * Number of the iteration.
   */
  iteration: number;
  /**
   * Its try.
   */
  attempt: number;
  /**
   * Who worked.
   */
  agent: string;
  /**
   * With which model, as the agent says, else as it was asked for.
   */
  model?: string | null;
  /**
   * Digest of the prompt.
   */
  prompt: string;
  /**
   * When it began.
   */
  started_at: string;
  /**
   * When it was judged.
   */
  ended_at: string;
  /**
   * How long the session took.
   */
  session_ms: number;
  /**
   * How the session ended.
   */
  end?: SessionEnd | null;
  /**
   * Exit code, if there was one.
   */
  exit_code?: number | null;
  /**
   * Whether the final message held the promise.
   */
  promised: boolean;
  /**
   * The final message in one line.
   */
  message: string;
  /**
   * Tokens of the session, where they are known.
   */
  tokens?: Tokens | null;
  /**
   * Money of the session, where it is known.
   */
  cost_usd?: number | null;
  /**
   * How it is known.
   */
  cost_basis: "reported" | "estimated" | "unknown";
  /**
   * What reading from a cache saved.
   */
  saved_usd?: number | null;
  /**
   * The tree that the iteration left.
   */
  tree?: string | null;
  /**
   * The work commit, where something changed.
   */
  commit?: string | null;
  /**
   * Files changed.
   */
  files_changed: number;
  /**
   * Lines added.
   */
  lines_added: number;
  /**
   * Lines removed.
   */
  lines_removed: number;
  /**
   * Results of the verifiers that ran.
   */
  checks: CheckResult[];
  /**
   * Protected paths that were changed.
   */
  protected_changed: ProtectedChange[];
  /**
   * The judgement.
   */
  verdict:
    "candidate" | "false_promise" | "checks_fail" | "not_promised" | "protected_changed" | "session_failed";
  /**
   * Money of the run up to now.
   */
  total_cost_usd: number;
  /**
   * An estimate of what the run's sandboxes have cost up to now.
   */
  total_compute_usd?: number;
  total_tokens: Tokens1;
}
/**
 * Tokens of one or many sessions. `input` excludes what was read from or written to a cache.
 *
 * This interface was referenced by `Receipt`'s JSON-Schema
 * via the `definition` "tokens".
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
 * The result of one verifier on one tree.
 *
 * This interface was referenced by `Receipt`'s JSON-Schema
 * via the `definition` "check_result".
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
 * How a protected path differs from the start of the run.
 *
 * This interface was referenced by `Receipt`'s JSON-Schema
 * via the `definition` "protected_change".
 */
export interface ProtectedChange {
  /**
   * The path.
   */
  path: string;
  /**
   * What happened to it.
   */
  change: "changed" | "removed" | "added";
}
/**
 * Tokens of one or many sessions. `input` excludes what was read from or written to a cache.
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
 * Tests as a runner counted them.
 *
 * This interface was referenced by `Receipt`'s JSON-Schema
 * via the `definition` "test_counts".
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
