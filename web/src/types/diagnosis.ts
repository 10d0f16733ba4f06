// Made by `npm run types` from schemas/diagnosis.schema.json. Do not edit.

/**
 * What the doctor answers after reading the record of a run.
 */
export interface Report {
  /**
   * What was observed.
   *
   * Items: Something that was observed.
   */
  failure_patterns?: {
    /**
     * Where it shows.
     */
    evidence?: string;
    /**
     * What.
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
   * Another model or agent, where that would help.
   */
  model_suggestion?: {
    /**
     * The agent it is for; all of them where absent.
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
   * What is probably behind it.
   */
  root_causes?: string[];
  /**
   * In one or two sentences, for the next session.
   */
  summary: string;
  /**
   * Edits that make the task clearer or easier to check.
   *
   * Items: An edit of the task: one passage, found exactly once, and what stands there instead.
   */
  task_edits?: {
    /**
     * The passage.
     */
    find: string;
    /**
     * What stands there instead.
     */
    replace: string;
    /**
     * Why.
     */
    why: string;
  }[];
}
