//! Several runs of one task side by side, for display.

use crate::id::RunId;
use crate::money::{Cost, Usd};
use serde::{Deserialize, Serialize};

/// How the winner of a race is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RaceBy {
    /// The first proven run; the others are then ended.
    #[default]
    First,
    /// Of all proven runs, the one with the best metric.
    Metric,
    /// Of all proven runs, the one with the smallest diff.
    Diff,
    /// Of all proven runs, the cheapest.
    Cost,
}

impl RaceBy {
    /// Parses user input: the best by `metric`, `diff` or `cost`; `first` isn't a ranking.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.trim() {
            "first" => Ok(Self::First),
            "metric" => Ok(Self::Metric),
            "diff" => Ok(Self::Diff),
            "cost" => Ok(Self::Cost),
            other => Err(format!("`{other}` is none of first, metric, diff, cost")),
        }
    }

    /// How the winner is chosen, in a few words.
    pub fn words(self) -> &'static str {
        match self {
            Self::First => "the first proven result wins",
            Self::Metric => "the best number of all proven results wins",
            Self::Diff => "the smallest diff of all proven results wins",
            Self::Cost => "the cheapest of all proven results wins",
        }
    }
}

/// The state of a race.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RaceView {
    /// Its name: the id of its first run.
    pub id: RunId,
    /// The title of the task.
    pub title: String,
    /// How the winner is chosen.
    pub by: RaceBy,
    /// The budget of all runs together.
    pub budget_usd: Usd,
    /// The cost of all runs together.
    #[serde(flatten)]
    pub cost: Cost,
    /// The winner, once known.
    #[serde(default)]
    pub winner: Option<RunId>,
    /// Why the others were ended early, if they were.
    #[serde(default)]
    pub ended: Option<String>,
    /// Every run has ended.
    pub over: bool,
    /// Whether a process supervises it: ends runs that can't win any more, and shares the budget.
    pub looked_after: bool,
    /// Its runs, in the order they were named.
    pub runs: Vec<RaceRun>,
}

/// A run in a race.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RaceRun {
    /// The agent, the model, or its number.
    pub name: String,
    /// Its run.
    pub run_id: RunId,
    /// Whether it has begun, so that it can be opened.
    pub begun: bool,
    /// The status word.
    pub status: String,
    /// Its progress or its result.
    pub detail: String,
    /// The current iteration, or the last one.
    pub iteration: u32,
    /// Most iterations.
    pub max_iterations: u32,
    /// What it has cost.
    #[serde(flatten)]
    pub cost: Cost,
    /// Its best number, if the task has one.
    #[serde(default)]
    pub best: Option<f64>,
    /// Its result is proven.
    pub proven: bool,
    /// How its process ended.
    #[serde(default)]
    pub exit_code: Option<i32>,
}

impl RaceView {
    /// The run that won.
    pub fn winning(&self) -> Option<&RaceRun> {
        let winner = self.winner.as_ref()?;
        self.runs.iter().find(|run| run.run_id == *winner)
    }

    /// The outcome in one sentence.
    pub fn verdict(&self) -> String {
        match (self.winning(), self.over, self.looked_after) {
            (Some(run), ..) if !run.proven => {
                format!("{} wins: its own tests pass, nothing is proven", run.name)
            }
            (Some(run), ..) => format!("{} wins", run.name),
            (None, true, _) if self.by == RaceBy::Cost && self.runs.iter().any(|run| run.proven) => {
                "no winner: the cost of no proven result is fully known".to_owned()
            }
            (None, true, _) => "no winner: no result is proven".to_owned(),
            (None, false, true) => self.by.words().to_owned(),
            (None, false, false) => {
                "no process supervises this race; its runs continue separately".to_owned()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_race_says_who_wins_and_by_what() {
        for by in [RaceBy::First, RaceBy::Metric, RaceBy::Diff, RaceBy::Cost] {
            let word = serde_json::to_value(by).unwrap();
            assert_eq!(RaceBy::parse(word.as_str().unwrap()), Ok(by));
        }
        assert!(RaceBy::parse("speed").is_err());
    }
}
