// Made by `npm run types` from schemas/diagnosis.schema.json. Do not edit.

/**
 * What the doctor answers after reading the record of a run.
 */
export interface Report {
  /**
   * What was observed.
   *
   * Items: An observation.
   */
  failure_patterns?: {
    /**
     * The evidence.
     */
    evidence?: string;
    /**
     * The pattern.
     */
    pattern: string;
  }[];
  /**
   * One to three rules for the following sessions.
   *
   * @minItems 1
   * @maxItems 3
   *
   * Items: A rule for the following sessions.
   */
  guardrails:
    | [
        {
          /**
           * What to do then.
           */
          instruction: string;
          /**
           * When it applies.
           */
          trigger: string;
        }
      ]
    | [
        {
          /**
           * What to do then.
           */
          instruction: string;
          /**
           * When it applies.
           */
          trigger: string;
        },
        {
          /**
           * What to do then.
           */
          instruction: string;
          /**
           * When it applies.
           */
          trigger: string;
        }
      ]
    | [
        {
          /**
           * What to do then.
           */
          instruction: string;
          /**
           * When it applies.
           */
          trigger: string;
        },
        {
          /**
           * What to do then.
           */
          instruction: string;
          /**
           * When it applies.
           */
          trigger: string;
        },
        {
          /**
           * What to do then.
           */
          instruction: string;
          /**
           * When it applies.
           */
          trigger: string;
        }
      ];
  /**
   * Another model or agent, if that would help.
   */
  model_suggestion?: {
    /**
     * The agent it is for; all agents if absent.
     */
    agent?: string;
    /**
     * The model or profile.
     */
    model: string;
    /**
     * Why.
     */
    why: string;
  };
  /**
   * Likely causes.
   */
  root_causes?: string[];
  /**
   * One or two sentences for the next session.
   */
  summary: string;
  /**
   * Edits that make the task clearer or easier to check.
   *
   * Items: A task edit: one passage, found exactly once, and its replacement.
   */
  task_edits?: {
    /**
     * The passage.
     */
    find: string;
    /**
     * The replacement.
     */
    replace: string;
    /**
     * Why.
     */
    why: string;
  }[];
}
