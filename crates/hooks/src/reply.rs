//! What a hook says, in the words of the CLIs.

use crate::event::Cli;
use serde_json::json;

/// What goes out, and how the process ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    /// One JSON object, or nothing.
    pub stdout: String,
}

impl Reply {
    /// Nothing to say.
    pub fn pass() -> Self {
        Self::default()
    }

    /// The tool call is refused. Codex takes no other keys: with them the command ran.
    pub fn deny(cli: Cli, reason: &str) -> Self {
        Self::json(&match cli {
            Cli::Claude => json!({"hookSpecificOutput": {
                "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason,
            }}),
            Cli::Gemini => json!({"decision": "deny", "reason": reason}),
        })
    }

    /// The session goes on instead of ending.
    pub fn block(reason: &str) -> Self {
        Self::json(&json!({"decision": "block", "reason": reason}))
    }

    /// Something that the model reads.
    pub fn context(event: &str, text: &str) -> Self {
        Self::json(&json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}))
    }

    /// A word for the person; the session goes on.
    pub fn warn(text: &str) -> Self {
        Self::json(&json!({"systemMessage": format!("ralph: {text}")}))
    }

    fn json(value: &serde_json::Value) -> Self {
        Self { stdout: format!("{value}\n") }
    }
}
