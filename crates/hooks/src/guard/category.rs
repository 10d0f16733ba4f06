//! What the guard refuses, in eighteen categories, and the message for the agent.

use super::rules::Rules;
use serde::{Deserialize, Serialize};

/// A category of danger; `rules.toml` has its texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the words are in rules.toml")]
pub enum Category {
    Files,
    Disk,
    Privilege,
    RemoteCode,
    ReverseShell,
    Exfiltration,
    Credentials,
    GitHistory,
    Publish,
    Container,
    Persistence,
    Kernel,
    NetworkScan,
    Kill,
    Environment,
    Cloud,
    Database,
    Guard,
    Unreadable,
}

/// Why something was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub category: Category,
    /// An excerpt of the command or file, as the guard understood it.
    pub what: String,
    pub why: String,
}

const SHOWN_MAX: usize = 160;

impl Refusal {
    /// A refusal; `what` is cut to an excerpt.
    pub fn new(category: Category, what: impl AsRef<str>, why: impl Into<String>) -> Self {
        let what =
            ralph_loop_protocol::display::text::one_line(&super::text::shown(what.as_ref()), SHOWN_MAX);
        Self { category, what, why: why.into() }
    }

    /// The message for the agent: what was refused, why, and what to do instead.
    pub fn message(&self) -> String {
        let words = Rules::load().and_then(|rules| rules.categories.get(&self.category));
        let (title, instead) = words.map_or(("", ""), |(title, instead)| (title, instead));
        format!("Refused by ralph's guard ({title}): `{}`. {} {instead}", self.what, self.why)
    }
}
