// Made by `npm run types` from schemas/control.schema.json. Do not edit.

/**
 * One intervention of a person, with who sent it. A run takes each id once.
 */
export type Control = {
  /**
   * The sender and surface, for example `ana via cli`.
   */
  from: string;
  /**
   * Unique within the run.
   */
  id: string;
} & (
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
);

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
