// Asks `ralph hook` before each tool. Where the answer is no, or where there is none, the tool is not called.
import { spawnSync } from "node:child_process";

export const ralph = async ({ directory }) => ({
  "tool.execute.before": async (input, output) => {
    const event = {
      session_id: input.sessionID,
      cwd: directory,
      hook_event_name: "PreToolUse",
      tool_name: input.tool,
      tool_input: output.args,
    };
    const done = spawnSync("{{program}}", ["hook", "pre-tool-use", "--for", "opencode"], {
      input: JSON.stringify(event),
      timeout: 8000,
      killSignal: "SIGKILL",
      encoding: "utf8",
    });
    if (done.error || done.status !== 0) {
      throw new Error("Refused: ralph's guard could not be asked.");
    }
    const answer = done.stdout.trim() ? JSON.parse(done.stdout).hookSpecificOutput : undefined;
    if (answer?.permissionDecision === "deny") {
      throw new Error(answer.permissionDecisionReason);
    }
  },
});
