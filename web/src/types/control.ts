// Made by `npm run types` from schemas/control.schema.json. Do not edit.

/**
 * One intervention of a person, with who sent it. A run takes each id once.
 */
export type Control = {
  /**
   * Who sent it and by which door, for example `ana via cli`.
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
);

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
 * Other limits for the whole run; what is left out stays. A run that a budget ended goes on where there is room again.
 */
export interface BudgetChange1 {
  control: "budget";
}
