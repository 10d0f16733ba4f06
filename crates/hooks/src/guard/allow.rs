//! The user's exceptions from the guard's rules. Only the user's own file counts, never a repo's.

use super::category::Category;
use super::text;
use serde::Deserialize;

/// The user's `guard.json`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllowRules {
    #[serde(default)]
    allow: Vec<Rule>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    /// The category; default: any.
    category: Option<Category>,
    /// The complete command with `*` and `?`; default: any.
    command: Option<String>,
}

impl AllowRules {
    /// Parses the user's file.
    ///
    /// # Errors As text, if it is invalid. Then nothing is allowed.
    pub fn parse(text: &str) -> Result<Self, String> {
        let rules: Self = serde_json::from_str(text).map_err(|e| e.to_string())?;
        match rules.allow.iter().find(|rule| rule.category.is_none() && rule.command.is_none()) {
            Some(_) => Err("a rule names neither a `category` nor a `command`".to_owned()),
            None => Ok(rules),
        }
    }

    /// Whether a refused command is allowed. The guard's own files never are.
    pub fn allow(&self, category: Category, words: &str) -> bool {
        category != Category::Guard
            && self.allow.iter().any(|rule| {
                rule.category.is_none_or(|one| one == category)
                    && rule.command.as_ref().is_none_or(|pattern| text::matches(pattern, words.trim()))
            })
    }
}
