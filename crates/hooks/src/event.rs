//! The events that a hook answers, and the CLIs that send them.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookEvent {
    PreToolUse,
    PostToolUse,
    Stop,
    SessionStart,
    SessionEnd,
}

impl HookEvent {
    pub const NAMES: &'static [&'static str] =
        &["pre-tool-use", "post-tool-use", "context-monitor", "stop", "session-start", "session-end"];

    /// The event of this name: ours, or as the CLIs write theirs.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "pre-tool-use" | "PreToolUse" | "BeforeTool" => Some(Self::PreToolUse),
            "post-tool-use"
            | "PostToolUse"
            | "post-tool-use-failure"
            | "PostToolUseFailure"
            | "AfterTool"
            | "context-monitor" => Some(Self::PostToolUse),
            "stop" | "Stop" => Some(Self::Stop),
            "session-start" | "SessionStart" => Some(Self::SessionStart),
            "session-end" | "SessionEnd" => Some(Self::SessionEnd),
            _ => None,
        }
    }
}

/// The CLI whose format an answer uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cli {
    /// Claude Code; qwen and codex read the same.
    #[default]
    Claude,
    Gemini,
}

impl Cli {
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "claude" | "codex" | "qwen" | "opencode" => Some(Self::Claude),
            "gemini" => Some(Self::Gemini),
            _ => None,
        }
    }
}
