//! A hook's answer, in the format of each CLI.

use crate::event::Cli;
use serde_json::json;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    pub stdout: String,
}

impl Reply {
    pub fn pass() -> Self {
        Self::default()
    }

    /// Refuses the tool call. Codex runs the command if there are other keys.
    pub fn deny(cli: Cli, reason: &str) -> Self {
        Self::json(&match cli {
            Cli::Claude => json!({"hookSpecificOutput": {
                "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason,
            }}),
            Cli::Gemini => json!({"decision": "deny", "reason": reason}),
        })
    }

    /// Makes the session continue instead of ending.
    pub fn block(reason: &str) -> Self {
        Self::json(&json!({"decision": "block", "reason": reason}))
    }

    pub fn context(event: &str, text: &str) -> Self {
        Self::json(&json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}))
    }

    /// A message for the user; the session continues.
    pub fn warn(text: &str) -> Self {
        Self::json(&json!({"systemMessage": format!("ralph: {text}")}))
    }

    fn json(value: &serde_json::Value) -> Self {
        Self { stdout: format!("{value}\n") }
    }
}
