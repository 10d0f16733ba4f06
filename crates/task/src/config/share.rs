//! What of the user's own settings a sandboxed agent gets beside its login.

use serde::{Deserialize, Serialize};

/// One part of the user's own settings of an agent CLI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum Share {
    /// The user's own `CLAUDE.md`, `AGENTS.md`, `GEMINI.md`.
    Instructions,
    /// The user's own skills.
    Skills,
    /// The MCP servers that the user has set up.
    Mcp,
}

impl Share {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Instructions, Self::Skills, Self::Mcp];

    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::Skills => "skills",
            Self::Mcp => "mcp",
        }
    }

    /// From a word.
    pub fn parse(word: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|share| share.as_str() == word)
            .ok_or_else(|| format!("`{word}` can't be shared; use instructions, skills or mcp"))
    }
}
