//! The budgets of a run.

use serde::{Deserialize, Serialize};

/// A kind of budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum BudgetKind {
    /// Iterations.
    Iterations,
    /// Working time.
    Time,
    /// Money.
    Cost,
    /// Tokens.
    Tokens,
}

impl BudgetKind {
    /// The word used in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Iterations => "iterations",
            Self::Time => "working time",
            Self::Cost => "cost",
            Self::Tokens => "tokens",
        }
    }
}
