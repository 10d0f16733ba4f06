//! How statuses and agents look on every screen: one sign and one color role per status, one of six colors per agent.
//! The terminal uses it directly; `scripts/generate` writes `schemas/looks.json` from it for the dashboard.

use crate::status::Status;
use serde::Serialize;

/// The meaning of a color.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ColorRole {
    /// Unimportant.
    Muted,
    /// Work in progress.
    Accent,
    /// Needs attention.
    Attention,
    /// Proven.
    Good,
    /// Ended without success.
    Bad,
}

/// How a status looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Look {
    /// Its Unicode sign.
    pub sign: &'static str,
    /// Its ASCII sign.
    pub ascii: &'static str,
    /// Its color role.
    pub role: ColorRole,
    /// Its rank in a list by attention: runs that need you, then active ones, then the rest.
    pub rank: u8,
}

impl Look {
    const fn new(sign: &'static str, ascii: &'static str, role: ColorRole, rank: u8) -> Self {
        Self { sign, ascii, role, rank }
    }

    /// The look of a status word in a list, including `gone` and `unreadable`.
    pub fn of_word(word: &str) -> Self {
        let of_run = Status::ALL.into_iter().find(|status| status.as_str() == word).map(Status::look);
        of_run.unwrap_or_else(|| match word {
            "unreadable" => Self::new("–", "-", ColorRole::Bad, 2),
            "gone" => Self::new("–", "-", ColorRole::Muted, 2),
            _ => Self::new("·", "-", ColorRole::Muted, 2),
        })
    }

    /// The sign, in Unicode or ASCII.
    pub fn sign(self, unicode: bool) -> &'static str {
        if unicode { self.sign } else { self.ascii }
    }
}

impl Status {
    /// How it looks.
    pub const fn look(self) -> Look {
        use ColorRole::{Accent, Attention, Bad, Good, Muted};
        match self {
            Self::NeedsYou => Look::new("▲", "!", Attention, 0),
            Self::Working => Look::new("●", "*", Accent, 1),
            Self::Verifying => Look::new("◐", "%", Accent, 1),
            Self::Preparing => Look::new("◔", "o", Accent, 1),
            Self::Proving => Look::new("◑", "%", Accent, 1),
            Self::Publishing => Look::new("◕", "*", Accent, 1),
            Self::Waiting => Look::new("◷", "~", Attention, 2),
            Self::Paused => Look::new("‖", "||", Attention, 2),
            Self::Interrupted => Look::new("◌", "!!", Attention, 2),
            Self::Done => Look::new("✓", "ok", Good, 2),
            Self::Failed => Look::new("✗", "x", Bad, 2),
            Self::Stopped => Look::new("■", "[]", Bad, 2),
            Self::Queued => Look::new("○", "o", Muted, 2),
        }
    }
}

/// An agent's color, as `#rrggbb`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AgentColor {
    /// On a dark background.
    pub dark: &'static str,
    /// On a light background.
    pub light: &'static str,
}

/// The six colors of agents: violet, teal, orange, green, pink, blue. Each has AA contrast on its background.
pub const AGENT_COLORS: [AgentColor; 6] = [
    AgentColor { dark: "#b59af0", light: "#6a3fb5" },
    AgentColor { dark: "#5cc3d9", light: "#0b6e87" },
    AgentColor { dark: "#f0a070", light: "#a0460f" },
    AgentColor { dark: "#8fcf8f", light: "#2f6f2f" },
    AgentColor { dark: "#f08cc4", light: "#a0286e" },
    AgentColor { dark: "#9db8f0", light: "#37568f" },
];

/// Agents with a fixed color, in the order of [`AGENT_COLORS`].
pub const COLORED_AGENTS: [&str; 6] = ["claude", "codex", "gemini", "opencode", "actions", "scripted"];

/// The index of an agent's color in [`AGENT_COLORS`]; the same for `claude` and `claude-opus`.
pub fn agent_color(name: &str) -> usize {
    let is_of =
        |agent: &&str| name.strip_prefix(*agent).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
    let hash =
        || name.chars().fold(5381_u32, |hash, letter| hash.wrapping_mul(33).wrapping_add(u32::from(letter)));
    COLORED_AGENTS.iter().position(is_of).unwrap_or_else(|| hash() as usize % AGENT_COLORS.len())
}

/// All looks, for the dashboard.
pub fn table() -> serde_json::Value {
    let words = Status::ALL.map(Status::as_str).into_iter().chain(["gone", "unreadable"]);
    let statuses: serde_json::Map<String, serde_json::Value> = words
        .map(|word| (word.to_owned(), serde_json::to_value(Look::of_word(word)).unwrap_or_default()))
        .collect();
    serde_json::json!({ "statuses": statuses, "agents": COLORED_AGENTS, "colors": AGENT_COLORS })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_statuses_share_a_sign() {
        let signs: std::collections::BTreeSet<&str> =
            Status::ALL.iter().map(|status| status.look().sign).collect();
        assert_eq!(signs.len(), Status::ALL.len());
        assert!(Status::ALL.iter().all(|status| status.look().ascii.is_ascii()));
        assert_eq!(Look::of_word("needs you"), Status::NeedsYou.look());
        assert_eq!(Look::of_word("gone").sign(false), "-");
    }

    #[test]
    fn agents_keep_their_color() {
        assert_eq!(["claude", "claude-opus", "codex"].map(agent_color), [0, 0, 1]);
        // The dashboard hashes other names itself; its tests have the same numbers.
        assert_eq!(["claudette", "my-agent", "ägent"].map(agent_color), [4, 3, 1]);
    }
}
