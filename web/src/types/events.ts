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
       * Short name of the task.
       */
      title: string;
    }
  | {
      /**
       * Which driver of the run it is, from 1.
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
       * The version of the program that drives.
       */
      version?: string;
    }
  | Placed1
  | {
      baseline: Baseline2;
      checks?: BaselineChecks1;
      kind: "prepared";
      /**
       * Marks of programs and settings of this machine that checks depend on.
       */
      surroundings?: {
        [k: string]: string;
      };
    }
  | {
      /**
       * Who works.
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
       * With which model, where one was chosen.
       */
      model?: string;
      /**
       * Digest of the prompt.
       */
      prompt: string;
      /**
       * In which role, where a pipeline of roles is set.
       */
      role?: "builder" | "reviewer" | "tester" | "docs";
      /**
       * Agents that were passed over, with the reason.
       */
      skipped?: string[];
    }
  | {
      /**
       * What the agent asks for instead of going on.
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
       * Ids of criteria that the agent says are met, where it says so outside the task's file.
       */
      claims?: string[];
      /**
       * The message the agent would like for the iteration's commit.
       */
      commit_message?: string;
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
       * Exit code, if there was one.
       */
      exit_code?: number;
      /**
       * What a reviewer, tester or documenter found, for the builder.
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
       * Whether the final message held the promise.
       */
      promised: boolean;
      /**
       * Digest of `response.json`.
       */
      response?: string;
      /**
       * Processes left behind and ended.
       */
      survivors?: number;
      usage: Usage3;
    }
  | ActionStarted1
  | ActionFinished1
  | EgressRefused1
  | SandboxReady1
  | SandboxGone1
  | {
      /**
       * Lines added, of all files.
       */
      added: number;
      /**
       * Recorded again in the same iteration, with the engine's own marks or after a restart.
       */
      again?: boolean;
      /**
       * The work commit; absent where nothing changed.
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
       * How many changed in all.
       */
      files_total: number;
      /**
       * Files in submodules that the session has edited: they are not part of the result.
       */
      in_submodules?: string[];
      /**
       * Its iteration.
       */
      iteration: number;
      kind: "checkpointed";
      /**
       * Lines removed, of all files.
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
       * How many more differ, where the list is cut.
       */
      left_out?: number;
    }
  | {
      /**
       * Ids of all criteria that are claimed now.
       */
      ids: string[];
      /**
       * Its iteration.
       */
      iteration: number;
      kind: "claimed";
      /**
       * Ids of those that are not, stories that the agent added included.
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
       * What does not pass: names of required checks, or what the final check of the same files did not accept.
       */
      failing?: string[];
      /**
       * Signature of the failure that was seen, if any.
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
  | {
      /**
       * Its number, which will be used again.
       */
      iteration: number;
      kind: "iteration_voided";
      /**
       * Why it does not count.
       */
      reason: string;
    }
  | {
      /**
       * Who.
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
       * Who.
       */
      agent: string;
      kind: "cooldown_cleared";
    }
  | {
      /**
       * Who.
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
       * For what.
       */
      reason: string;
      /**
       * Until when, where that is known.
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
       * Which.
       */
      budget: "iterations" | "time" | "cost" | "tokens";
      /**
       * Working time of what was ended, which no other event tells of; 0 where nothing was.
       */
      cut_ms?: number;
      kind: "budget_warning";
      /**
       * In words with numbers.
       */
      message: string;
    }
  | {
      /**
       * The evidence, in words.
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
    }
  | {
      context?: StuckDetails1;
      /**
       * The evidence, in words.
       */
      evidence: string[];
      /**
       * The iteration that showed it.
       */
      iteration: number;
      kind: "stuck";
      /**
       * Which conditions, each told once until something gets better.
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
       * The agent that sits out until something gets better.
       */
      benched?: string;
      /**
       * What that means here.
       */
      detail: string;
      kind: "mitigated";
      /**
       * Which.
       */
      rung: "nudge" | "rotate" | "fallback" | "doctor" | "pause";
      /**
       * The agent that works with another model until something gets better, and the model.
       *
       * @minItems 2
       * @maxItems 2
       */
      substitute?: [string, string];
    }
  | Diagnosed1
  | Criticised1
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
           * The whole new text.
           */
          task: string;
        }
      | BudgetChange1
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
       * Who sent it and by which door, for example `ana via cli`.
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
       * How many more moved, where the list is cut.
       */
      left_out?: number;
      /**
       * Which; where the list is cut, those that a person must look at first.
       */
      moves: RefMove[];
    }
  | {
      kind: "tampered";
      /**
       * What was edited, and how it was noticed.
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
       * In words, with what to do.
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
       * The commit it judges.
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
       * What did not hold.
       */
      failed?: string[];
      /**
       * Changes of the harness, one line each; `proof.json` has all of them.
       */
      harness?: string[];
      /**
       * What only a person can fix, where that is why it failed.
       */
      hint?: string;
      kind: "proof_finished";
      /**
       * What the result is worth.
       */
      level?: "already_true" | "unverified" | "own_tests" | "independent";
      /**
       * Why the level isn't higher.
       */
      level_reason?: string;
      /**
       * Whether everything held.
       */
      passed: boolean;
      /**
       * Digest of `proof.json`.
       */
      proof: string;
      question?: TestsQuestion1;
      /**
       * Checks that did not pass in it, with what they printed last.
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
       * What was found.
       */
      reason: string;
    }
  | {
      /**
       * The branch or ref that holds it.
       */
      branch: string;
      /**
       * The commit.
       */
      commit: string;
      kind: "published";
      /**
       * The pull request, where there is one.
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
       * Which one, in words.
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
       * In one sentence.
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
 * What an agent asks for instead of continuing.
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
 * The how-manieth driver of a run. Each one that starts gets the next: of two that both believe to drive, the one with the
 * smaller epoch is the one that was replaced.
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
 * How a session circles.
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
       * How many calls take turns.
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
 * It is over.
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
   * Its place in the session.
   */
  number: number;
  /**
   * Whether it worked.
   */
  ok: boolean;
  /**
   * What came of it, in one line.
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
   * What it is: `run`, `patch`, `write`, … or a tool's name.
   */
  action: string;
  /**
   * Its iteration.
   */
  iteration: number;
  /**
   * Its place in the session, from 1.
   */
  number: number;
  /**
   * On what, in one line.
   */
  what: string;
}
/**
 * What counts as the baseline from now on.
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
   * How many were dirty in all, where the list is cut.
   */
  dirty_total?: number;
  /**
   * The commit that `HEAD` named.
   */
  head: string;
  /**
   * Files too large for the snapshot, left alone.
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
   * Whether the results are those of an earlier run on the same files with the same checks.
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
   * The last lines that it printed.
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
   * Which one: a hash of the words around it.
   */
  key: number;
  /**
   * Its name, for people.
   */
  label?: string;
  /**
   * How far repeated measurements of it lie apart, in thousandths; 0 where it was measured once.
   */
  noise?: number;
  /**
   * Whether more of it is better.
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
 * New limits of a run, each for the whole run.
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
 * The checks of the pushed commit were looked at.
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
   * What they printed, for the next session.
   */
  feedback?: string;
  /**
   * When they are looked at again.
   */
  next?: string;
  /**
   * How many there are.
   */
  seen?: number;
  /**
   * How they stand.
   */
  state: "none" | "pending" | "passed" | "failed";
}
/**
 * A critic looked at the last changes and failures; its objections go into the next prompt.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "criticised".
 */
export interface Criticised {
  /**
   * The agent or profile that spoke.
   */
  by: string;
  /**
   * The last iteration it looked at.
   */
  iteration: number;
  /**
   * The objections; empty where it had none or could not speak.
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
   * Cost, where it is known.
   */
  cost?: number;
  /**
   * The model that the agent says it used.
   */
  model?: string;
  /**
   * What reading from a cache saved against the price of fresh input, less what writing to it cost.
   */
  saved?: number;
  tokens?: Tokens;
}
/**
 * Tokens, where the agent reports them.
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
 * The doctor has read the run; the report is in `diagnostics.md`.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "diagnosed".
 */
export interface Diagnosed {
  /**
   * The profile that spoke, or `rules`.
   */
  by: string;
  /**
   * Iterations when it did.
   */
  iteration: number;
  /**
   * Digest of the report.
   */
  report: string;
  /**
   * What follows: `applied` or `offered`.
   */
  suggestions?: string[];
  /**
   * In one sentence.
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
   * Cost, where it is known.
   */
  cost?: number;
  /**
   * The model that the agent says it used.
   */
  model?: string;
  /**
   * What reading from a cache saved against the price of fresh input, less what writing to it cost.
   */
  saved?: number;
  tokens?: Tokens;
}
/**
 * Something that is about to be done to the outside world.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "effect_intended".
 */
export interface EffectIntended {
  /**
   * What.
   */
  effect: "push" | "pull_request" | "comment" | "notification";
  /**
   * Which one, so that it is recognised as the same when it is done again.
   */
  key: string;
}
/**
 * A host that the sandbox refused to a command.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "egress_refused".
 */
export interface EgressRefused {
  /**
   * Whom.
   */
  host: string;
  /**
   * On which port.
   */
  port: number;
  /**
   * Why.
   */
  reason: string;
  /**
   * How often it was tried, since this was last told.
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
 * What was handed back, and what the user's own edits kept back.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "handed".
 */
export interface Handed {
  /**
   * The branch that was left where the user has moved it meanwhile.
   */
  branch_kept?: string;
  /**
   * The work commit that holds the agent's files.
   */
  commit?: string;
  /**
   * Files that the user has changed, too, at most 200: theirs stay, the agent's are in the work commit.
   */
  conflicts?: string[];
  /**
   * The iteration whose files they are.
   */
  iteration: number;
  /**
   * How many files were written or removed.
   */
  written: number;
}
/**
 * The code host or the remote did not do what was asked.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "handover_failed".
 */
export interface HandoverFailed {
  /**
   * What fixes it.
   */
  hint?: string;
  /**
   * What was tried, and why it failed.
   */
  reason: string;
  /**
   * When it is tried again; absent where only a person can help.
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
   * Which one: a hash of the words around it.
   */
  key: number;
  /**
   * Its name, for people.
   */
  label?: string;
  /**
   * How far repeated measurements of it lie apart, in thousandths; 0 where it was measured once.
   */
  noise?: number;
  /**
   * Whether more of it is better.
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
   * From where it was fetched.
   */
  from: string;
  /**
   * Digest of the new `spec.json`.
   */
  spec: string;
}
/**
 * The state at the start, as the new place knows it.
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
   * How many were dirty in all, where the list is cut.
   */
  dirty_total?: number;
  /**
   * The commit that `HEAD` named.
   */
  head: string;
  /**
   * Files too large for the snapshot, left alone.
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
 * A message to people that was sent, or could not be.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "notified".
 */
export interface Notified {
  /**
   * Who sent it: the notifier's name.
   */
  by: string;
  /**
   * What it is about.
   */
  occasion: "start" | "needs_human" | "gutter" | "limit_wait" | "success" | "failure";
  /**
   * The event it tells of.
   */
  of: number;
  /**
   * Whether it got through.
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
   * Which; empty where there are none any more.
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
   * Where people read it.
   */
  url: string;
}
/**
 * What a patch is made of.
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
   * Lines added or removed that are neither blank, comment, mere layout, notes nor generated.
   */
  substance: number;
}
/**
 * Where a run works, once that is made.
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
   * Digest of the `.ralph/config.json` that the repo brought into a place of the run's own.
   */
  config?: string;
  /**
   * The branch on the other side, where the run pushes.
   */
  push_branch?: string;
  /**
   * The folder of the agent's files.
   */
  workspace: string;
}
/**
 * A pull request was opened or changed.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "pr_written".
 */
export interface PrWritten {
  /**
   * Not yet for review.
   */
  draft: boolean;
  /**
   * Criteria met by then.
   */
  met?: number;
  /**
   * Its number.
   */
  number: number;
  /**
   * Where people read it.
   */
  url: string;
  /**
   * Why.
   */
  why: "opened" | "progress" | "proven" | "asked" | "stopped";
}
/**
 * Tests that the run changed, accepted.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "proof_approved".
 */
export interface ProofApproved {
  /**
   * Who.
   */
  by: string;
  /**
   * The commit.
   */
  commit: string;
  /**
   * Digest of `proof.json`, which says so now.
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
 * Branch and state are on the remote.
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
   * Its commit; absent where only the state was pushed.
   */
  commit?: string;
  /**
   * Finished iterations when it was pushed.
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
   * Whether a person must look at it. A remote-tracking ref moved by a fetch is only told.
   */
  needs_person: boolean;
  /**
   * Where it is; absent for a removed one.
   */
  to?: string;
}
/**
 * The review was looked at.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "review_seen".
 */
export interface ReviewSeen {
  /**
   * Ids of reviews and comments that are answered with this.
   */
  answered?: number[];
  /**
   * Who decided.
   */
  by?: string;
  /**
   * What people wrote, for the next session.
   */
  feedback?: string;
  /**
   * When it is looked at again.
   */
  next?: string;
  /**
   * How it stands.
   */
  state: "waiting" | "approved" | "changes_requested" | "closed" | "merged";
}
/**
 * A sandbox that is no more, or rests.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "sandbox_gone".
 */
export interface SandboxGone {
  /**
   * What became of it.
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
   * What it costs per hour, where that is known.
   */
  hourly?: number;
  /**
   * The provider's id.
   */
  id: string;
  /**
   * Who made it.
   */
  provider: string;
}
/**
 * The signals of one iteration. A field is 0 where its rule saw nothing, else the weight of the rule.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "signals".
 */
export interface Signals {
  /**
   * The same places are edited while the same failure stays.
   */
  churn?: number;
  /**
   * Trees, files or failures that come back in a circle.
   */
  cycle?: number;
  /**
   * Sessions that end without an answer, or refuse.
   */
  empty?: number;
  /**
   * One sentence for each signal that is not 0, in their order.
   */
  evidence?: string[];
  /**
   * Nothing of substance for a while.
   */
  idle?: number;
  /**
   * How surely the run circles, from 0 to 1.
   */
  loop_score: number;
  /**
   * Only a number that a check prints got better.
   */
  measured?: boolean;
  /**
   * Tests do not get better.
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
   * A session that circles within itself.
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
   * Files that are changed again and again (bounded).
   */
  cycling_files?: string[];
  /**
   * The last actions of the session, oldest first, in short form (bounded).
   */
  recent_actions?: string[];
  /**
   * The error that came again, in short form.
   */
  repeated_error?: string;
}
/**
 * What the engine read from an iteration's outputs; the event that ends it carries this.
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
   * Numbers that a check printed and that say how far the work is (bounded).
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
   * The session circled within itself.
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
         * How many calls take turns.
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
   * Keys of numbers that were other ones in a second run on the same files: they say nothing.
   */
  unsteady?: number[];
}
/**
 * The number that the run is to improve.
 */
export interface MeasuredNumber2 {
  /**
   * Which one: a hash of the words around it.
   */
  key: number;
  /**
   * Its name, for people.
   */
  label?: string;
  /**
   * How far repeated measurements of it lie apart, in thousandths; 0 where it was measured once.
   */
  noise?: number;
  /**
   * Whether more of it is better.
   */
  rises: boolean;
  /**
   * Its value, in thousandths.
   */
  value: number;
}
/**
 * What the patch was made of; absent where nothing changed.
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
   * Lines added or removed that are neither blank, comment, mere layout, notes nor generated.
   */
  substance: number;
}
/**
 * Tests as a runner counted them.
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
   * Tests, and what sets them up, that the run changed.
   */
  changed: HarnessChange[];
  /**
   * Checks that fail on the work with the originals restored.
   */
  failing?: CheckResult[];
  /**
   * What else did not hold then.
   */
  why?: string[];
}
/**
 * Tokens of one or many sessions. `input` excludes what was read from or written to a cache.
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
   * Output tokens, reasoning included.
   */
  output: number;
}
/**
 * What one session used. `tokens: None` means that the agent said nothing about tokens.
 *
 * This interface was referenced by `undefined`'s JSON-Schema
 * via the `definition` "usage".
 */
export interface Usage2 {
  /**
   * How the cost is known.
   */
  basis: "reported" | "estimated" | "unknown";
  /**
   * Cost, where it is known.
   */
  cost?: number;
  /**
   * The model that the agent says it used.
   */
  model?: string;
  /**
   * What reading from a cache saved against the price of fresh input, less what writing to it cost.
   */
  saved?: number;
  tokens?: Tokens;
}
/**
 * Files were brought back to an earlier tree of the run.
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
   * The iteration whose changes were taken back.
   */
  iteration: number;
  /**
   * The tree that the files have again.
   */
  tree: string;
  /**
   * Why.
   */
  why: string;
}
/**
 * The place that the run works in is made.
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
   * How many were dirty in all, where the list is cut.
   */
  dirty_total?: number;
  /**
   * The commit that `HEAD` named.
   */
  head: string;
  /**
   * Files too large for the snapshot, left alone.
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
 * How the checks ended before the first session, in a clean checkout of the start.
 */
export interface BaselineChecks1 {
  /**
   * Whether the results are those of an earlier run on the same files with the same checks.
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
   * The last lines that it printed.
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
export interface Usage3 {
  /**
   * How the cost is known.
   */
  basis: "reported" | "estimated" | "unknown";
  /**
   * Cost, where it is known.
   */
  cost?: number;
  /**
   * The model that the agent says it used.
   */
  model?: string;
  /**
   * What reading from a cache saved against the price of fresh input, less what writing to it cost.
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
 * It is over.
 */
export interface ActionFinished1 {
  kind: "action_finished";
}
/**
 * The sandbox refused a host to a command.
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
 * A sandbox of the run is no more, or rests.
 */
export interface SandboxGone1 {
  kind: "sandbox_gone";
}
/**
 * The agent's files went into the user's own tree.
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
 * What the stuck rules read from the outputs, for the iterations to come.
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
   * Numbers that a check printed and that say how far the work is (bounded).
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
   * The session circled within itself.
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
         * How many calls take turns.
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
   * Keys of numbers that were other ones in a second run on the same files: they say nothing.
   */
  unsteady?: number[];
}
/**
 * The stuck signals and their score.
 */
export interface Signals1 {
  /**
   * The same places are edited while the same failure stays.
   */
  churn?: number;
  /**
   * Trees, files or failures that come back in a circle.
   */
  cycle?: number;
  /**
   * Sessions that end without an answer, or refuse.
   */
  empty?: number;
  /**
   * One sentence for each signal that is not 0, in their order.
   */
  evidence?: string[];
  /**
   * Nothing of substance for a while.
   */
  idle?: number;
  /**
   * How surely the run circles, from 0 to 1.
   */
  loop_score: number;
  /**
   * Only a number that a check prints got better.
   */
  measured?: boolean;
  /**
   * Tests do not get better.
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
   * A session that circles within itself.
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
 * What was done, what failed and which files cycle.
 */
export interface StuckDetails1 {
  /**
   * Files that are changed again and again (bounded).
   */
  cycling_files?: string[];
  /**
   * The last actions of the session, oldest first, in short form (bounded).
   */
  recent_actions?: string[];
  /**
   * The error that came again, in short form.
   */
  repeated_error?: string;
}
/**
 * The doctor has read the run; the report is in `diagnostics.md`.
 */
export interface Diagnosed1 {
  kind: "diagnosed";
}
/**
 * A critic looked at the last changes and failures; its objections go into the next prompt.
 */
export interface Criticised1 {
  kind: "criticised";
}
/**
 * Files were brought back to an earlier tree of the run.
 */
export interface WentBack1 {
  kind: "went_back";
}
/**
 * Other limits for the whole run; what is left out stays. A run that a budget ended goes on where there is room again.
 */
export interface BudgetChange1 {
  control: "budget";
}
/**
 * The task has a new version.
 */
export interface SpecChanged1 {
  kind: "spec_changed";
}
/**
 * What a person approved is the new baseline: refs as they are, the configuration as it is.
 */
export interface ApprovalApplied1 {
  kind: "approval_applied";
}
/**
 * The question that needs your approval, if only that prevents a pass.
 */
export interface TestsQuestion1 {
  /**
   * Tests, and what sets them up, that the run changed.
   */
  changed: HarnessChange[];
  /**
   * Checks that fail on the work with the originals restored.
   */
  failing?: CheckResult[];
  /**
   * What else did not hold then.
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
 * Branch and state are on the remote.
 */
export interface Pushed1 {
  kind: "pushed";
}
/**
 * A pull request was opened or changed.
 */
export interface PrWritten1 {
  kind: "pr_written";
}
/**
 * The code host or the remote did not do what was asked.
 */
export interface HandoverFailed1 {
  kind: "handover_failed";
}
/**
 * The checks of the pushed commit were looked at.
 */
export interface ChecksSeen1 {
  kind: "checks_seen";
}
/**
 * The review of the pull request was looked at.
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
 * The run goes on elsewhere.
 */
export interface Moved1 {
  kind: "moved";
}
/**
 * Something is about to be done to the outside world, by the one driver that may (in a fleet).
 */
export interface EffectIntended1 {
  kind: "effect_intended";
}
/**
 * Somebody was told, or could not be.
 */
export interface Notified1 {
  kind: "notified";
}
