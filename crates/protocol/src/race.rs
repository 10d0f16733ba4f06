//! Several runs of one task side by side, as whoever shows them reads it.

use crate::id::RunId;
use crate::money::{Cost, Usd};
use serde::{Deserialize, Serialize};

/// Who wins a race.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RaceBy {
    /// Whoever is proven first; the others are ended then.
    #[default]
    First,
    /// Of all proven ones, that with the best number of the task.
    Metric,
    /// Of all proven ones, that with the smallest diff.
    Diff,
    /// Of all proven ones, the cheapest.
    Cost,
}

impl RaceBy {
    /// Reads what people write: the best by `metric`, `diff` or `cost`; `first` is nobody's best.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.trim() {
            "first" => Ok(Self::First),
            "metric" => Ok(Self::Metric),
            "diff" => Ok(Self::Diff),
            "cost" => Ok(Self::Cost),
            other => Err(format!("`{other}` is none of first, metric, diff, cost")),
        }
    }

    /// Who wins, in a few words.
    pub fn words(self) -> &'static str {
        match self {
            Self::First => "the first proven result wins",
            Self::Metric => "the best number of all proven results wins",
            Self::Diff => "the smallest diff of all proven results wins",
            Self::Cost => "the cheapest of all proven results wins",
        }
    }
}

/// A race as it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RaceView {
    /// Its name: the id of its first run.
    pub id: RunId,
    /// The title of the task.
    pub title: String,
    /// Who wins.
    pub by: RaceBy,
    /// What all of them may cost together.
    pub budget_usd: Usd,
    /// What all of them have cost.
    #[serde(flatten)]
    pub cost: Cost,
    /// The run that won, once one has.
    #[serde(default)]
    pub winner: Option<RunId>,
    /// Why the others were ended before their end, where they were.
    #[serde(default)]
    pub ended: Option<String>,
    /// Every run has ended.
    pub over: bool,
    /// A process looks after it: ends those that cannot win any more, and shares the budget.
    pub looked_after: bool,
    /// Those that race, in the order in which they were named.
    pub runs: Vec<RaceRun>,
}

/// One of those that race.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RaceRun {
    /// The agent, the model, or its number.
    pub name: String,
    /// Its run.
    pub run_id: RunId,
    /// Whether there is something to open: it has begun.
    pub begun: bool,
    /// The status word.
    pub status: String,
    /// Where it is, or what it came to.
    pub detail: String,
    /// The iteration under way, or the last one.
    pub iteration: u32,
    /// Most iterations.
    pub max_iterations: u32,
    /// What it has cost.
    #[serde(flatten)]
    pub cost: Cost,
    /// Its best number, where the task has one.
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

    /// Who won, or that nobody has: one sentence.
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
