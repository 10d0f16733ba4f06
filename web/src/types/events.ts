// Made by `npm run types` from schemas/events.schema.json. Do not edit.

/**
 * One event of a run. Kinds and fields are only ever added; readers skip what they do not know.
 */
export type RunEvent = {
  /**
   * When, to the millisecond.
   */
  at: string;
  /**
   * Position in the journal.
   */
  seq: number;
} & (
  | {
      kind: "run_created";
      /**
       * Digest of `spec.json`.
       */
      spec: string;
      /**
       * The task's title.
       */
      title: string;
    }
  | {
      /**
       * The driver's epoch, from 1.
       */
      epoch?: number;
      kind: "driver_started";
      /**
       * The machine it runs on.
       */
      machine?: string;
      /**
       * Its process id.
       */
      pid: number;
      /**
       * Bytes of a torn last line that were set aside.
       */
      torn_bytes?: number;
      /**
       * The driver's program version.
       */
      version?: string;
    }
  | Placed1
  | {
      baseline: Baseline2;
      checks?: BaselineChecks1;
      kind: "prepared";
      /**
       * Fingerprints of local programs and settings that checks depend on.
       */
      surroundings?: {
        [k: string]: string;
      };
    }
  | {
      /**
       * The agent.
       */
      agent: string;
      /**
       * Try, from 1.
       */
      attempt: number;
      /**
       * Number, from 1.
       */
      iteration: number;
      kind: "iteration_started";
      /**
       * The model, if chosen.
       */
      model?: string;
      /**
       * Digest of the prompt.
       */
      prompt: string;
      /**
       * The role, in a pipeline of roles.
       */
      role?: "builder" | "reviewer" | "tester" | "docs";
      /**
       * Agents that were skipped, with the reason.
       */
      skipped?: string[];
    }
  | {
      /**
       * What the agent requests instead of continuing.
       */
      ask?:
        | {
            ask: "rotate";
            /**
             * Why.
             */
            reason: string;
          }
        | {
            ask: "pause";
            /**
             * What about.
             */
            reason: string;
          }
        | {
            ask: "give_up";
            /**
             * Why.
             */
            reason: string;
          };
      /**
       * Ids of criteria that the agent claims outside the task's file.
       */
      claims?: string[];
      /**
       * The agent's suggestion for the iteration's commit message.
       */
      commit_message?: string;
      /**
       * Commits of some of its files that it wants before that one.
       */
      commit_parts?: CommitPart[];
      /**
       * Tool uses that were denied.
       */
      denials?: number;
      /**
       * How long it took.
       */
      duration_ms: number;
      /**
       * How it ended.
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
       * The exit code, if any.
       */
      exit_code?: number;
      /**
       * Findings of a reviewer, tester or documenter, for the builder.
       */
      findings?: string;
      /**
       * Its iteration.
       */
      iteration: number;
      kind: "session_ended";
      /**
       * The final message in one line.
       */
      message: string;
      /**
       * Whether the final message contained the promise.
       */
      promised: boolean;
      /**
       * Digest of `response.json`.
       */
      response?: string;
      /**
       * Leftover processes that were ended.
       */
      survivors?: number;
      usage: Usage4;
    }
  | ActionStarted1
  | ActionFinished1
  | EgressRefused1
  | SandboxReady1
  | SandboxGone1
  | {
      /**
       * Lines added in all files.
       */
      added: number;
      /**
       * Recorded again in the same iteration, with the engine's marks or after a restart.
       */
      again?: boolean;
      /**
       * The work commit; absent without changes.
       */
      commit?: string;
      /**
       * Files that were dirty at the start and are now edited.
       */
      dirty_touched?: string[];
      /**
       * Files changed, at most 200.
       */
      files: FileChange[];
      /**
       * The total number of changed files.
       */
      files_total: number;
      /**
       * Files in submodules that the session edited; they aren't part of the result.
       */
      in_submodules?: string[];
      /**
       * Its iteration.
       */
      iteration: number;
      kind: "checkpointed";
      /**
       * Lines removed in all files.
       */
      removed: number;
      /**
       * The tree.
       */
      tree: string;
    }
  | Handed1
  | {
      /**
       * Its iteration.
       */
      iteration: number;
      kind: "check_finished";
      result: CheckResult1;
    }
  | {
      /**
       * What differs.
       */
      changes: ProtectedChange[];
      /**
       * Its iteration.
       */
      iteration: number;
      kind: "protected_changed";
      /**
       * How many more differ, if the list is cut.
       */
      left_out?: number;
    }
  | {
      /**
       * Ids of all current claims.
       */
      ids: string[];
      /**
       * Its iteration.
       */
      iteration: number;
      kind: "claimed";
      /**
       * Ids of the others, including stories that the agent added.
       */
      open?: string[];
    }
  | {
      /**
       * Its iteration.
       */
      iteration: number;
      kind: "ticked";
      /**
       * Ids of all criteria that are met now.
       */
      met: string[];
    }
  | {
      evidence?: StuckEvidence1;
      /**
       * What doesn't pass: names of required checks, or what the final check of the same files rejected.
       */
      failing?: string[];
      /**
       * Signature of the failure, if any.
       */
      failure?: string;
      /**
       * Its number.
       */
      iteration: number;
      kind: "iteration_ended";
      /**
       * Digest of `receipt.json`.
       */
      receipt: string;
      signals: Signals1;
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
  | {
      /**
       * Its number, which will be reused.
       */
      iteration: number;
      kind: "iteration_voided";
      /**
       * Why it doesn't count.
       */
      reason: string;
    }
  | {
      /**
       * The agent.
       */
      agent: string;
      kind: "cooldown_set";
      /**
       * Why.
       */
      reason: string;
      /**
       * Until when.
       */
      until: string;
    }
  | {
      /**
       * The agent.
       */
      agent: string;
      kind: "cooldown_cleared";
    }
  | {
      /**
       * The agent.
       */
      agent: string;
      kind: "agent_dropped";
      /**
       * Why (login, billing).
       */
      reason: string;
    }
  | {
      kind: "wait_started";
      /**
       * What it waits for.
       */
      reason: string;
      /**
       * When it ends, if known.
       */
      until?: string;
    }
  | {
      kind: "wait_ended";
      /**
       * How long it took.
       */
      waited_ms: number;
    }
  | {
      /**
       * The kind of budget.
       */
      budget: "iterations" | "time" | "cost" | "tokens";
      /**
       * Working time of what was ended, which no other event reports; 0 if nothing was.
       */
      cut_ms?: number;
      kind: "budget_warning";
      /**
       * A sentence with numbers.
       */
      message: string;
    }
  | {
      /**
       * The evidence, as text.
       */
      evidence: string[];
      /**
       * The iteration that showed it.
       */
      iteration: number;
      kind: "gutter";
      /**
       * The score.
       */
      loop_score: number;
      /**
       * What the last sessions said that they did, the newest last.
       */
      tried?: string[];
    }
  | {
      context?: StuckDetails1;
      /**
       * The evidence, as text.
       */
      evidence: string[];
      /**
       * The iteration that showed it.
       */
      iteration: number;
      kind: "stuck";
      /**
       * Which kinds, each reported once until something improves.
       *
       * Items: The five ways of being stuck.
       */
      kinds: ("repetitive" | "error_loop" | "oscillation" | "no_progress" | "empty")[];
      /**
       * The score.
       */
      loop_score: number;
    }
  | {
      /**
       * The agent that is skipped until something improves.
       */
      benched?: string;
      /**
       * What it means here.
       */
      detail: string;
      kind: "mitigated";
      /**
       * Which step.
       */
      rung: "nudge" | "rotate" | "fallback" | "doctor" | "pause";
      /**
       * The agent that uses another model until something improves, and the model.
       *
       * @minItems 2
       * @maxItems 2
       */
      substitute?: [string, string];
    }
  | Diagnosed1
  | Criticised1
  | PromiseAsked1
  | WentBack1
  | ((
      | {
          control: "pause";
        }
      | {
          control: "resume";
        }
      | {
          control: "rotate";
        }
      | {
          control: "stop";
        }
      | {
          control: "cancel";
        }
      | {
          /**
           * The agent.
           */
          agent?: string;
          control: "skip";
        }
      | {
          /**
           * The agent.
           */
          agent: string;
          control: "cooldown";
          /**
           * For how long.
           */
          seconds: number;
        }
      | {
          /**
           * For one agent only.
           */
          agent?: string;
          /**
           * For every following iteration, not only the next one.
           */
          always?: boolean;
          control: "model";
          /**
           * The model, or `None` for the configured one.
           */
          model?: string;
        }
      | {
          control: "edit";
          /**
           * The complete new text.
           */
          task: string;
        }
      | BudgetChange1
      | PublishChange1
      | {
          control: "approve";
        }
      | {
          control: "diagnose";
        }
      | {
          control: "note";
          /**
           * The text.
           */
          text: string;
        }
      | {
          control: "guardrail";
          /**
           * The text.
           */
          text: string;
        }
      | {
          control: "nudge";
          /**
           * The text.
           */
          text: string;
        }
    ) & {
      /**
       * The sender and surface, for example `ana via cli`.
       */
      from: string;
      /**
       * Unique within the run.
       */
      id: string;
      /**
       * Bytes of the inbox read so far.
       */
      inbox: number;
      kind: "control_received";
    })
  | {
      /**
       * Its id.
       */
      id: string;
      /**
       * Bytes of the inbox read so far.
       */
      inbox?: number;
      kind: "control_refused";
      /**
       * Why.
       */
      reason: string;
    }
  | SpecChanged1
  | ApprovalApplied1
  | {
      kind: "refs_moved";
      /**
       * How many more moved, if the list is cut.
       */
      left_out?: number;
      /**
       * The moved refs; if the list is cut, those that need approval come first.
       */
      moves: RefMove[];
    }
  | {
      kind: "tampered";
      /**
       * What was edited, and how that was noticed.
       */
      what: string;
    }
  | {
      kind: "restored";
      /**
       * What.
       */
      what: string;
    }
  | {
      kind: "needs_human";
      /**
       * A message with what to do.
       */
      message: string;
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
  | {
      /**
       * Whether it runs in a clean checkout.
       */
      clean: boolean;
      /**
       * The judged commit.
       */
      commit: string;
      kind: "proof_started";
    }
  | {
      /**
       * The commit.
       */
      commit: string;
      /**
       * What failed without the work and passes with it, one line each.
       */
      difference?: string[];
      /**
       * How long it took.
       */
      duration_ms?: number;
      /**
       * What didn't pass.
       */
      failed?: string[];
      /**
       * Changes of the harness, one line each; `proof.json` has all of them.
       */
      harness?: string[];
      /**
       * What only you can fix, if that is why it failed.
       */
      hint?: string;
      kind: "proof_finished";
      /**
       * The strength of the result.
       */
      level?: "already_true" | "unverified" | "own_tests" | "independent";
      /**
       * Why the level isn't higher.
       */
      level_reason?: string;
      /**
       * Whether everything passed.
       */
      passed: boolean;
      /**
       * Digest of `proof.json`.
       */
      proof: string;
      question?: TestsQuestion1;
      /**
       * Checks that didn't pass, with their last output.
       */
      refused?: CheckResult[];
      /**
       * The tree.
       */
      tree: string;
      /**
       * Whether the checks were watched.
       */
      watched?: "watched" | "not_watched";
    }
  | ProofApproved1
  | {
      kind: "proof_voided";
      /**
       * What is wrong.
       */
      reason: string;
    }
  | {
      /**
       * The branch or ref with the result.
       */
      branch: string;
      /**
       * The commit.
       */
      commit: string;
      kind: "published";
      /**
       * The pull request, if any.
       */
      pr_url?: string;
    }
  | Pushed1
  | PrWritten1
  | HandoverFailed1
  | ChecksSeen1
  | ReviewSeen1
  | OverlapFound1
  | Moved1
  | EffectIntended1
  | {
      /**
       * The signal.
       */
      by: string;
      kind: "suspended";
    }
  | {
      kind: "finished";
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
  | Notified1
  | {
      kind: "notice";
      /**
       * The sentence.
       */
      message: string;
    }
);
/**
 * What an agent requests instead of continuing.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "ask".
 */
export type Ask =
  | {
      ask: "rotate";
      /**
       * Why.
       */
      reason: string;
    }
  | {
      ask: "pause";
      /**
       * What about.
       */
      reason: string;
    }
  | {
      ask: "give_up";
      /**
       * Why.
       */
      reason: string;
    };
/**
 * SHA-256 of some bytes, as 64 hex digits.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "digest".
 */
export type Digest = string;
/**
 * Driver epoch, increased by each driver that starts. If two drivers both think that they hold a run, the one with
 * the smaller epoch was replaced.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "epoch".
 */
export type Epoch = number;
/**
 * How a session ended.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
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
 * How a session repeats itself.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "session_loop".
 */
export type SessionLoop =
  | {
      how: "repeated";
      /**
       * How often in a row.
       */
      times: number;
    }
  | {
      how: "failing";
      /**
       * How often in a row.
       */
      times: number;
    }
  | {
      how: "alternating";
      /**
       * How many calls alternate.
       */
      period: number;
    }
  | {
      how: "monologue";
      /**
       * Messages in a row.
       */
      messages: number;
    };

/**
 * A managed action has ended.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "action_finished".
 */
export interface ActionFinished {
  /**
   * How long it took.
   */
  duration_ms: number;
  /**
   * Exit code of a command.
   */
  exit_code?: number;
  /**
   * Its iteration.
   */
  iteration: number;
  /**
   * Its number in the session.
   */
  number: number;
  /**
   * Whether it worked.
   */
  ok: boolean;
  /**
   * The result, in one line.
   */
  result: string;
}
/**
 * A managed action of a session begins.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "action_started".
 */
export interface ActionStarted {
  /**
   * The kind: `run`, `patch`, `write`, … or a tool's name.
   */
  action: string;
  /**
   * Its iteration.
   */
  iteration: number;
  /**
   * Its number in the session, from 1.
   */
  number: number;
  /**
   * Its target, in one line.
   */
  what: string;
}
/**
 * The new baseline after an approval.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "approval_applied".
 */
export interface ApprovalApplied {
  /**
   * Digest of the repo's configuration now.
   */
  config?: string;
  /**
   * Digest of `spec.json`.
   */
  spec: string;
}
/**
 * The state at the start of a run.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "baseline".
 */
export interface Baseline {
  /**
   * The branch, unless detached.
   */
  branch?: string | null;
  /**
   * Files that were dirty or untracked.
   */
  dirty?: string[];
  /**
   * The total number of dirty files, if the list is cut.
   */
  dirty_total?: number;
  /**
   * The commit that `HEAD` named.
   */
  head: string;
  /**
   * Files too large for the snapshot.
   */
  left_out?: string[];
  /**
   * The snapshot commit.
   */
  start: string;
  /**
   * Its tree.
   */
  tree: string;
}
/**
 * Check results before the first session, in a clean checkout of the original snapshot, after setup.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "baseline_checks".
 */
export interface BaselineChecks {
  /**
   * Whether the results come from an earlier run on the same files with the same checks.
   */
  cached?: boolean;
  metric?: MeasuredNumber;
  /**
   * Checks that failed twice, and not because of the environment.
   */
  red?: string[];
  /**
   * Each check that was run.
   */
  results: CheckResult[];
  /**
   * The setup command that failed there, so that no check was run.
   */
  setup_failed?: string;
  /**
   * Its last output lines.
   */
  setup_lines?: string[];
  /**
   * Its log, relative to the run's folder.
   */
  setup_log?: string;
  /**
   * Whether they were watched.
   */
  watched?: "watched" | "not_watched";
}
/**
 * The original value of the number to improve.
 */
export interface MeasuredNumber {
  /**
   * Identifies the number: a hash of the words around it.
   */
  key: number;
  /**
   * Its name, for display.
   */
  label?: string;
  /**
   * The spread of repeated measurements, in thousandths; 0 for a single one.
   */
  noise?: number;
  /**
   * Whether higher is better.
   */
  rises: boolean;
  /**
   * Its value, in thousandths.
   */
  value: number;
}
/**
 * The result of one verifier on one tree.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
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
 * New limits for the whole run.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "budget_change".
 */
export interface BudgetChange {
  /**
   * Most money.
   */
  max_cost?: number;
  /**
   * Most iterations.
   */
  max_iterations?: number;
  /**
   * Most working time, in seconds.
   */
  max_seconds?: number;
  /**
   * Most tokens.
   */
  max_tokens?: number;
}
/**
 * The checks of the pushed commit were read.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "checks_seen".
 */
export interface ChecksSeen {
  /**
   * The commit.
   */
  commit: string;
  /**
   * Names of those that failed.
   */
  failing?: string[];
  /**
   * Their output, for the next session.
   */
  feedback?: string;
  /**
   * When they are read again.
   */
  next?: string;
  /**
   * How many there are.
   */
  seen?: number;
  /**
   * Their state.
   */
  state: "none" | "pending" | "passed" | "failed";
}
/**
 * A commit of some of a session's files.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "commit_part".
 */
export interface CommitPart {
  /**
   * Its message.
   */
  message: string;
  /**
   * The files and folders in it.
   */
  paths: string[];
}
/**
 * A critic reviewed the last changes and failures; its objections go into the next prompt.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "criticised".
 */
export interface Criticised {
  /**
   * The agent or profile used.
   */
  by: string;
  /**
   * The last iteration it reviewed.
   */
  iteration: number;
  /**
   * The objections; empty if it had none or failed.
   */
  objections: string;
  usage: Usage;
}
/**
 * What it used.
 */
export interface Usage {
  /**
   * How the cost is known.
   */
  basis: "reported" | "estimated" | "unknown";
  /**
   * Cost, if known.
   */
  cost?: number;
  /**
   * The model that the agent reported.
   */
  model?: string;
  /**
   * Savings by cache reads against the price of fresh input, less the cost of cache writes.
   */
  saved?: number;
  tokens?: Tokens;
}
/**
 * Tokens, if the agent reports them.
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
 * The doctor has analyzed the run; the report is in `diagnostics.md`.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "diagnosed".
 */
export interface Diagnosed {
  /**
   * The profile used, or `rules`.
   */
  by: string;
  /**
   * The number of iterations at that time.
   */
  iteration: number;
  /**
   * Digest of the report.
   */
  report: string;
  /**
   * What happens with them: `applied` or `offered`.
   */
  suggestions?: string[];
  /**
   * One sentence.
   */
  summary: string;
  usage: Usage1;
}
/**
 * What it used.
 */
export interface Usage1 {
  /**
   * How the cost is known.
   */
  basis: "reported" | "estimated" | "unknown";
  /**
   * Cost, if known.
   */
  cost?: number;
  /**
   * The model that the agent reported.
   */
  model?: string;
  /**
   * Savings by cache reads against the price of fresh input, less the cost of cache writes.
   */
  saved?: number;
  tokens?: Tokens;
}
/**
 * A side effect is about to happen.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "effect_intended".
 */
export interface EffectIntended {
  /**
   * The kind.
   */
  effect: "push" | "pull_request" | "comment" | "notification";
  /**
   * Identifies it, so that a repeat is recognized.
   */
  key: string;
}
/**
 * The sandbox refused a command access to a host.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "egress_refused".
 */
export interface EgressRefused {
  /**
   * The host.
   */
  host: string;
  /**
   * The port.
   */
  port: number;
  /**
   * Why.
   */
  reason: string;
  /**
   * How often it was tried since the last report.
   */
  times: number;
}
/**
 * A changed file.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "file_change".
 */
export interface FileChange {
  /**
   * Lines added; absent for binary files.
   */
  added?: number;
  /**
   * Object id of the content now; absent for deleted files.
   */
  blob?: string;
  /**
   * Its path.
   */
  path: string;
  /**
   * Lines removed; absent for binary files.
   */
  removed?: number;
  /**
   * `A`dded, `M`odified, `D`eleted, `T`ype changed.
   */
  status: string;
}
/**
 * What was handed back, and what the user's edits prevented.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "handed".
 */
export interface Handed {
  /**
   * The branch that stayed, because the user has moved it.
   */
  branch_kept?: string;
  /**
   * The work commit with the agent's files.
   */
  commit?: string;
  /**
   * Files that the user has changed as well, at most 200: theirs stay, the agent's are in the work commit.
   */
  conflicts?: string[];
  /**
   * The iteration of the files.
   */
  iteration: number;
  /**
   * How many files were written or removed.
   */
  written: number;
}
/**
 * The code host or the remote didn't do what was requested.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "handover_failed".
 */
export interface HandoverFailed {
  /**
   * How to fix it.
   */
  hint?: string;
  /**
   * What was tried, and why it failed.
   */
  reason: string;
  /**
   * When it is retried; absent if only the user can help.
   */
  retry_at?: string;
}
/**
 * A change of the harness.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "harness_change".
 */
export interface HarnessChange {
  /**
   * Whether the run added it.
   */
  added?: boolean;
  /**
   * Whether the task names it.
   */
  named?: boolean;
  /**
   * The file.
   */
  path: string;
  /**
   * The rule that makes it part of the harness.
   */
  source: "glob" | "config" | "watched" | "inline_tests" | "shadow";
  /**
   * What happened, and why the file counts.
   */
  what: string;
}
/**
 * A number that a check printed.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "measured_number".
 */
export interface MeasuredNumber1 {
  /**
   * Identifies the number: a hash of the words around it.
   */
  key: number;
  /**
   * Its name, for display.
   */
  label?: string;
  /**
   * The spread of repeated measurements, in thousandths; 0 for a single one.
   */
  noise?: number;
  /**
   * Whether higher is better.
   */
  rises: boolean;
  /**
   * Its value, in thousandths.
   */
  value: number;
}
/**
 * The run continues elsewhere: on another machine, in another folder.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "moved".
 */
export interface Moved {
  baseline: Baseline1;
  /**
   * Where it was fetched from.
   */
  from: string;
  /**
   * Digest of the new `spec.json`.
   */
  spec: string;
}
/**
 * The original state, as the new workspace has it.
 */
export interface Baseline1 {
  /**
   * The branch, unless detached.
   */
  branch?: string | null;
  /**
   * Files that were dirty or untracked.
   */
  dirty?: string[];
  /**
   * The total number of dirty files, if the list is cut.
   */
  dirty_total?: number;
  /**
   * The commit that `HEAD` named.
   */
  head: string;
  /**
   * Files too large for the snapshot.
   */
  left_out?: string[];
  /**
   * The snapshot commit.
   */
  start: string;
  /**
   * Its tree.
   */
  tree: string;
}
/**
 * A notification was sent, or failed.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "notified".
 */
export interface Notified {
  /**
   * The notifier's name.
   */
  by: string;
  /**
   * Its occasion.
   */
  occasion: "start" | "needs_human" | "gutter" | "limit_wait" | "success" | "failure";
  /**
   * The event it is about.
   */
  of: number;
  /**
   * Whether it was delivered.
   */
  ok: boolean;
  /**
   * Why not.
   */
  why?: string;
}
/**
 * Other open pull requests touch the same files.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "overlap_found".
 */
export interface OverlapFound {
  /**
   * Whether the user must decide.
   */
  pause?: boolean;
  /**
   * The pull requests; empty if there are none any more.
   */
  prs: OverlapWith[];
}
/**
 * Another open pull request on the same files.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "overlap_with".
 */
export interface OverlapWith {
  /**
   * The files that both touch, at most ten.
   */
  files: string[];
  /**
   * Its number.
   */
  number: number;
  /**
   * Its title.
   */
  title: string;
  /**
   * Its web page.
   */
  url: string;
}
/**
 * What a patch consists of.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "patch_sketch".
 */
export interface PatchSketch {
  /**
   * A sample of the hashes of added lines.
   */
  added: number[];
  /**
   * A sample of the hashes of removed lines.
   */
  removed: number[];
  /**
   * Changed lines that aren't blank, comments, layout, notes or generated.
   */
  substance: number;
}
/**
 * Where a run works, once created.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "placed".
 */
export interface Placed {
  /**
   * The branch that the run commits on.
   */
  branch?: string;
  /**
   * Digest of the `.ralph/config.json` that came with the repo into the run's own workspace.
   */
  config?: string;
  /**
   * The remote branch that the run pushes to.
   */
  push_branch?: string;
  /**
   * The folder of the agent's files.
   */
  workspace: string;
}
/**
 * A pull request was opened or updated.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "pr_written".
 */
export interface PrWritten {
  /**
   * Whether it is a draft.
   */
  draft: boolean;
  /**
   * Criteria met so far.
   */
  met?: number;
  /**
   * Its number.
   */
  number: number;
  /**
   * Its web page.
   */
  url: string;
  /**
   * Why.
   */
  why: "opened" | "progress" | "proven" | "asked" | "stopped";
}
/**
 * A session whose checks pass was asked for the promise that it left out, in the same iteration.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "promise_asked".
 */
export interface PromiseAsked {
  /**
   * Its agent.
   */
  agent: string;
  /**
   * What it says is left, if it doesn't.
   */
  answer?: string;
  /**
   * How long it took.
   */
  duration_ms: number;
  /**
   * Its iteration.
   */
  iteration: number;
  /**
   * Whether it says that the task is done.
   */
  promised: boolean;
  usage: Usage2;
}
/**
 * What the question used.
 */
export interface Usage2 {
  /**
   * How the cost is known.
   */
  basis: "reported" | "estimated" | "unknown";
  /**
   * Cost, if known.
   */
  cost?: number;
  /**
   * The model that the agent reported.
   */
  model?: string;
  /**
   * Savings by cache reads against the price of fresh input, less the cost of cache writes.
   */
  saved?: number;
  tokens?: Tokens;
}
/**
 * Changed tests were accepted.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "proof_approved".
 */
export interface ProofApproved {
  /**
   * Who approved.
   */
  by: string;
  /**
   * The commit.
   */
  commit: string;
  /**
   * Digest of the updated `proof.json`.
   */
  proof: string;
}
/**
 * How a protected path differs from the start of the run.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
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
 * Where a result goes, decided after the start of its run. What is left out stays as the run has it.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "publish_change".
 */
export interface PublishChange {
  /**
   * The branch that the pull request goes to.
   */
  base?: string;
  /**
   * The text of the pull request; the evidence follows it.
   */
  body?: string;
  /**
   * The branch on the remote.
   */
  branch: string;
  /**
   * Keep the pull request a draft.
   */
  draft?: boolean;
  /**
   * Open a pull request, in addition to the push.
   */
  pr: boolean;
  /**
   * The title of the pull request.
   */
  title?: string;
}
/**
 * Branch and state were pushed.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "pushed".
 */
export interface Pushed {
  /**
   * The branch.
   */
  branch: string;
  /**
   * Its commit; absent if only the state was pushed.
   */
  commit?: string;
  /**
   * The number of finished iterations.
   */
  iteration: number;
  /**
   * The commit of the state ref.
   */
  state: string;
}
/**
 * A ref that moved.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "ref_move".
 */
export interface RefMove {
  /**
   * Where it was; absent for a new one.
   */
  from?: string;
  /**
   * Its full name.
   */
  name: string;
  /**
   * Whether it needs approval. A remote-tracking ref moved by a fetch is only reported.
   */
  needs_person: boolean;
  /**
   * Where it is; absent for a removed one.
   */
  to?: string;
}
/**
 * The review was read.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "review_seen".
 */
export interface ReviewSeen {
  /**
   * Ids of reviews and comments that this answers.
   */
  answered?: number[];
  /**
   * Who decided.
   */
  by?: string;
  /**
   * The review comments, for the next session.
   */
  feedback?: string;
  /**
   * When it is read again.
   */
  next?: string;
  /**
   * Its state.
   */
  state: "waiting" | "approved" | "changes_requested" | "closed" | "merged";
}
/**
 * A sandbox is gone or stopped.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "sandbox_gone".
 */
export interface SandboxGone {
  /**
   * What happened to it.
   */
  fate: "destroyed" | "stopped" | "kept" | "lost";
  /**
   * The provider's id.
   */
  id: string;
}
/**
 * A sandbox to work in.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "sandbox_ready".
 */
export interface SandboxReady {
  /**
   * Its price per hour, if known.
   */
  hourly?: number;
  /**
   * The provider's id.
   */
  id: string;
  /**
   * The provider.
   */
  provider: string;
}
/**
 * The signals of one iteration. A field is 0 if its rule saw nothing, else the rule's weight.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "signals".
 */
export interface Signals {
  /**
   * The same lines are edited while the same failure stays.
   */
  churn?: number;
  /**
   * Trees, files or failures that recur.
   */
  cycle?: number;
  /**
   * Sessions that end without an answer, or refuse.
   */
  empty?: number;
  /**
   * One sentence for each signal that isn't 0, in their order.
   */
  evidence?: string[];
  /**
   * Nothing of substance for a while.
   */
  idle?: number;
  /**
   * How certainly the run is stuck, from 0 to 1.
   */
  loop_score: number;
  /**
   * Only a number that a check prints improved.
   */
  measured?: boolean;
  /**
   * Tests don't improve.
   */
  plateau?: number;
  /**
   * What improved in this iteration. Earlier signals no longer count.
   */
  progress?: string;
  /**
   * The same failure three times within five iterations.
   */
  repeated_failure: number;
  /**
   * The same plan with the same result.
   */
  same_plan?: number;
  /**
   * A session that repeats itself.
   */
  session_loop?: number;
  /**
   * No or nearly no change for three iterations.
   */
  stagnation: number;
  /**
   * A file that flips between two contents.
   */
  thrash: number;
}
/**
 * A new version of the task.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "spec_changed".
 */
export interface SpecChanged {
  /**
   * Digest of `spec.json`.
   */
  spec: string;
  /**
   * Digest of the task's text.
   */
  task: string;
  /**
   * Its version.
   */
  version: number;
}
/**
 * What a possibly stuck run did last: for the next session and for helpers.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "stuck_details".
 */
export interface StuckDetails {
  /**
   * Files that change again and again (bounded).
   */
  cycling_files?: string[];
  /**
   * The last actions of the session, oldest first, in short form (bounded).
   */
  recent_actions?: string[];
  /**
   * The recurring error, in short form.
   */
  repeated_error?: string;
}
/**
 * What the engine read from an iteration's output; part of the event that ends it.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "stuck_evidence".
 */
export interface StuckEvidence {
  /**
   * What a failing check lacks, with the fix.
   */
  environment?: string;
  /**
   * Names of failing tests, in order (bounded).
   */
  failing?: string[];
  /**
   * How far a measured number is from its limit, in thousandths.
   */
  gap?: number;
  /**
   * Criteria that are met.
   */
  met?: number;
  metric?: MeasuredNumber2;
  /**
   * Numbers printed by a check that show progress (bounded).
   */
  numbers?: MeasuredNumber1[];
  patch?: PatchSketch1;
  /**
   * Word groups of the final message, hashed.
   */
  plan?: number[];
  /**
   * Problems that a compiler or linter counted.
   */
  problems?: number;
  /**
   * The session repeated itself.
   */
  session?:
    | {
        how: "repeated";
        /**
         * How often in a row.
         */
        times: number;
      }
    | {
        how: "failing";
        /**
         * How often in a row.
         */
        times: number;
      }
    | {
        how: "alternating";
        /**
         * How many calls alternate.
         */
        period: number;
      }
    | {
        how: "monologue";
        /**
         * Messages in a row.
         */
        messages: number;
      };
  /**
   * Keys of numbers that were the same in a second run on the same files.
   */
  steady?: number[];
  /**
   * Keys of numbers that differed in a second run on the same files, so they don't count.
   */
  unsteady?: number[];
}
/**
 * The number that the run should improve.
 */
export interface MeasuredNumber2 {
  /**
   * Identifies the number: a hash of the words around it.
   */
  key: number;
  /**
   * Its name, for display.
   */
  label?: string;
  /**
   * The spread of repeated measurements, in thousandths; 0 for a single one.
   */
  noise?: number;
  /**
   * Whether higher is better.
   */
  rises: boolean;
  /**
   * Its value, in thousandths.
   */
  value: number;
}
/**
 * What the patch consisted of; absent without changes.
 */
export interface PatchSketch1 {
  /**
   * A sample of the hashes of added lines.
   */
  added: number[];
  /**
   * A sample of the hashes of removed lines.
   */
  removed: number[];
  /**
   * Changed lines that aren't blank, comments, layout, notes or generated.
   */
  substance: number;
}
/**
 * Tests as counted by a runner.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
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
/**
 * Whether changed tests are accepted.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "tests_question".
 */
export interface TestsQuestion {
  /**
   * Changed tests and test setup.
   */
  changed: HarnessChange[];
  /**
   * Checks that fail on the work with the originals restored.
   */
  failing?: CheckResult[];
  /**
   * What else didn't pass then.
   */
  why?: string[];
}
/**
 * Tokens of one or more sessions. `input` excludes cache reads and writes.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "tokens".
 */
export interface Tokens1 {
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
 * One session's usage. `tokens: None` means that the agent reported none.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "usage".
 */
export interface Usage3 {
  /**
   * How the cost is known.
   */
  basis: "reported" | "estimated" | "unknown";
  /**
   * Cost, if known.
   */
  cost?: number;
  /**
   * The model that the agent reported.
   */
  model?: string;
  /**
   * Savings by cache reads against the price of fresh input, less the cost of cache writes.
   */
  saved?: number;
  tokens?: Tokens;
}
/**
 * Files were restored to an earlier tree of the run.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "went_back".
 */
export interface WentBack {
  /**
   * How many files.
   */
  files: number;
  /**
   * The message for the next session, if any.
   */
  hint?: string;
  /**
   * The iteration whose changes were undone.
   */
  iteration: number;
  /**
   * The restored tree.
   */
  tree: string;
  /**
   * Why.
   */
  why: string;
}
/**
 * The run's workspace was created.
 */
export interface Placed1 {
  kind: "placed";
}
/**
 * The state at the start.
 */
export interface Baseline2 {
  /**
   * The branch, unless detached.
   */
  branch?: string | null;
  /**
   * Files that were dirty or untracked.
   */
  dirty?: string[];
  /**
   * The total number of dirty files, if the list is cut.
   */
  dirty_total?: number;
  /**
   * The commit that `HEAD` named.
   */
  head: string;
  /**
   * Files too large for the snapshot.
   */
  left_out?: string[];
  /**
   * The snapshot commit.
   */
  start: string;
  /**
   * Its tree.
   */
  tree: string;
}
/**
 * Check results before the first session, in a clean checkout of the original files.
 */
export interface BaselineChecks1 {
  /**
   * Whether the results come from an earlier run on the same files with the same checks.
   */
  cached?: boolean;
  metric?: MeasuredNumber;
  /**
   * Checks that failed twice, and not because of the environment.
   */
  red?: string[];
  /**
   * Each check that was run.
   */
  results: CheckResult[];
  /**
   * The setup command that failed there, so that no check was run.
   */
  setup_failed?: string;
  /**
   * Its last output lines.
   */
  setup_lines?: string[];
  /**
   * Its log, relative to the run's folder.
   */
  setup_log?: string;
  /**
   * Whether they were watched.
   */
  watched?: "watched" | "not_watched";
}
/**
 * Tokens and cost.
 */
export interface Usage4 {
  /**
   * How the cost is known.
   */
  basis: "reported" | "estimated" | "unknown";
  /**
   * Cost, if known.
   */
  cost?: number;
  /**
   * The model that the agent reported.
   */
  model?: string;
  /**
   * Savings by cache reads against the price of fresh input, less the cost of cache writes.
   */
  saved?: number;
  tokens?: Tokens;
}
/**
 * A managed action of a session begins.
 */
export interface ActionStarted1 {
  kind: "action_started";
}
/**
 * A managed action has ended.
 */
export interface ActionFinished1 {
  kind: "action_finished";
}
/**
 * The sandbox refused a command access to a host.
 */
export interface EgressRefused1 {
  kind: "egress_refused";
}
/**
 * The run has a sandbox to work in.
 */
export interface SandboxReady1 {
  kind: "sandbox_ready";
}
/**
 * A sandbox of the run is gone or stopped.
 */
export interface SandboxGone1 {
  kind: "sandbox_gone";
}
/**
 * The agent's files were copied into the user's tree.
 */
export interface Handed1 {
  kind: "handed_back";
}
/**
 * The result of one verifier on one tree.
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
 * What the stuck rules read from the output, for later iterations.
 */
export interface StuckEvidence1 {
  /**
   * What a failing check lacks, with the fix.
   */
  environment?: string;
  /**
   * Names of failing tests, in order (bounded).
   */
  failing?: string[];
  /**
   * How far a measured number is from its limit, in thousandths.
   */
  gap?: number;
  /**
   * Criteria that are met.
   */
  met?: number;
  metric?: MeasuredNumber2;
  /**
   * Numbers printed by a check that show progress (bounded).
   */
  numbers?: MeasuredNumber1[];
  patch?: PatchSketch1;
  /**
   * Word groups of the final message, hashed.
   */
  plan?: number[];
  /**
   * Problems that a compiler or linter counted.
   */
  problems?: number;
  /**
   * The session repeated itself.
   */
  session?:
    | {
        how: "repeated";
        /**
         * How often in a row.
         */
        times: number;
      }
    | {
        how: "failing";
        /**
         * How often in a row.
         */
        times: number;
      }
    | {
        how: "alternating";
        /**
         * How many calls alternate.
         */
        period: number;
      }
    | {
        how: "monologue";
        /**
         * Messages in a row.
         */
        messages: number;
      };
  /**
   * Keys of numbers that were the same in a second run on the same files.
   */
  steady?: number[];
  /**
   * Keys of numbers that differed in a second run on the same files, so they don't count.
   */
  unsteady?: number[];
}
/**
 * The stuck signals and their score.
 */
export interface Signals1 {
  /**
   * The same lines are edited while the same failure stays.
   */
  churn?: number;
  /**
   * Trees, files or failures that recur.
   */
  cycle?: number;
  /**
   * Sessions that end without an answer, or refuse.
   */
  empty?: number;
  /**
   * One sentence for each signal that isn't 0, in their order.
   */
  evidence?: string[];
  /**
   * Nothing of substance for a while.
   */
  idle?: number;
  /**
   * How certainly the run is stuck, from 0 to 1.
   */
  loop_score: number;
  /**
   * Only a number that a check prints improved.
   */
  measured?: boolean;
  /**
   * Tests don't improve.
   */
  plateau?: number;
  /**
   * What improved in this iteration. Earlier signals no longer count.
   */
  progress?: string;
  /**
   * The same failure three times within five iterations.
   */
  repeated_failure: number;
  /**
   * The same plan with the same result.
   */
  same_plan?: number;
  /**
   * A session that repeats itself.
   */
  session_loop?: number;
  /**
   * No or nearly no change for three iterations.
   */
  stagnation: number;
  /**
   * A file that flips between two contents.
   */
  thrash: number;
}
/**
 * What was done, what failed and which files change repeatedly.
 */
export interface StuckDetails1 {
  /**
   * Files that change again and again (bounded).
   */
  cycling_files?: string[];
  /**
   * The last actions of the session, oldest first, in short form (bounded).
   */
  recent_actions?: string[];
  /**
   * The recurring error, in short form.
   */
  repeated_error?: string;
}
/**
 * The doctor has analyzed the run; the report is in `diagnostics.md`.
 */
export interface Diagnosed1 {
  kind: "diagnosed";
}
/**
 * A critic reviewed the last changes and failures; its objections go into the next prompt.
 */
export interface Criticised1 {
  kind: "criticised";
}
/**
 * A session was asked for the promise that it left out.
 */
export interface PromiseAsked1 {
  kind: "promise_asked";
}
/**
 * Files were restored to an earlier tree of the run.
 */
export interface WentBack1 {
  kind: "went_back";
}
/**
 * New limits for the whole run; missing ones stay. A run that ended on a budget can then resume.
 */
export interface BudgetChange1 {
  control: "budget";
}
/**
 * Push the result, or open a pull request with it. A run that has ended does this now.
 */
export interface PublishChange1 {
  control: "publish";
}
/**
 * The task has a new version.
 */
export interface SpecChanged1 {
  kind: "spec_changed";
}
/**
 * Your approval sets the new baseline: refs and configuration as they are now.
 */
export interface ApprovalApplied1 {
  kind: "approval_applied";
}
/**
 * The question that needs your approval, if only that prevents a pass.
 */
export interface TestsQuestion1 {
  /**
   * Changed tests and test setup.
   */
  changed: HarnessChange[];
  /**
   * Checks that fail on the work with the originals restored.
   */
  failing?: CheckResult[];
  /**
   * What else didn't pass then.
   */
  why?: string[];
}
/**
 * You approve the result: the final check counts as passed.
 */
export interface ProofApproved1 {
  kind: "proof_approved";
}
/**
 * Branch and state were pushed.
 */
export interface Pushed1 {
  kind: "pushed";
}
/**
 * A pull request was opened or updated.
 */
export interface PrWritten1 {
  kind: "pr_written";
}
/**
 * The code host or the remote didn't do what was requested.
 */
export interface HandoverFailed1 {
  kind: "handover_failed";
}
/**
 * The checks of the pushed commit were read.
 */
export interface ChecksSeen1 {
  kind: "checks_seen";
}
/**
 * The review of the pull request was read.
 */
export interface ReviewSeen1 {
  kind: "review_seen";
}
/**
 * Other open pull requests touch the same files.
 */
export interface OverlapFound1 {
  kind: "overlap_found";
}
/**
 * The run continues elsewhere.
 */
export interface Moved1 {
  kind: "moved";
}
/**
 * A side effect is about to happen, by the only driver that may (in a fleet).
 */
export interface EffectIntended1 {
  kind: "effect_intended";
}
/**
 * A notification was sent, or failed.
 */
export interface Notified1 {
  kind: "notified";
}
