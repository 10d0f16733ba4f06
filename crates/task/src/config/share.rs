//! Which of the user's settings a sandboxed agent gets in addition to its login.

use serde::{Deserialize, Serialize};

/// A part of the user's agent CLI settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum Share {
    /// The user's `CLAUDE.md`, `AGENTS.md`, `GEMINI.md`.
    Instructions,
    /// The user's skills.
    Skills,
    /// The user's MCP servers.
    Mcp,
}

impl Share {
    pub const ALL: [Self; 3] = [Self::Instructions, Self::Skills, Self::Mcp];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::Skills => "skills",
            Self::Mcp => "mcp",
        }
    }

    pub fn parse(word: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|share| share.as_str() == word)
            .ok_or_else(|| format!("`{word}` can't be shared; use instructions, skills or mcp"))
    }
}
