//! Flag values shared by several commands.

use crate::error::CommandError;
use ralph_loop_protocol::control::BudgetChange;
use ralph_loop_protocol::money::Usd;
use ralph_loop_task::config::Isolation;
use ralph_loop_task::dialect::Publish;
use std::time::Duration;

#[derive(Debug, Clone, Default, clap::Args)]
pub struct BudgetArgs {
    /// Stop after this many iterations [default: 30]
    #[arg(short = 'n', long, value_name = "N", help_heading = "Checks and limits")]
    pub max_iterations: Option<u32>,
    /// Stop after this much working time [default: 7200]
    #[arg(long, value_name = "N", help_heading = "Checks and limits")]
    pub max_seconds: Option<u64>,
    /// Stop at this cost in USD [default: 10]
    #[arg(long, value_name = "USD", help_heading = "Checks and limits", value_parser = usd)]
    pub max_cost: Option<f64>,
    /// Stop after this many tokens in total
    #[arg(long, value_name = "N", help_heading = "Checks and limits")]
    pub max_tokens: Option<u64>,
}

impl BudgetArgs {
    pub fn change(&self) -> Result<BudgetChange, CommandError> {
        if self.max_iterations == Some(0) {
            return Err(CommandError::usage("`--max-iterations` must be at least 1"));
        }
        Ok(BudgetChange {
            max_iterations: self.max_iterations,
            max_seconds: self.max_seconds,
            max_cost: self.max_cost.map(Usd::from_dollars),
            max_tokens: self.max_tokens,
        })
    }
}

fn usd(text: &str) -> Result<f64, String> {
    let amount: f64 = text.parse().map_err(|_| "an amount in USD, such as 2.50".to_owned())?;
    match amount > 0.0 && amount <= Usd::MAX.dollars() {
        true => Ok(amount),
        false if amount == 0.0 => Err("an amount above 0".to_owned()),
        false => Err(format!("an amount in USD above 0 and up to {:.0}", Usd::MAX.dollars())),
    }
}

pub fn model(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("the name of a model; it is empty".to_owned()),
        name => Ok(name.to_owned()),
    }
}

/// Parses a duration such as `30m`, `12h`, `14d` or `2w`.
pub fn age(text: &str) -> Result<Duration, String> {
    let wrong = || "a number and a unit: 30m, 12h, 14d, 2w".to_owned();
    let unit = text.chars().last().ok_or_else(wrong)?;
    let seconds = match unit {
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        'w' => 7 * 86_400,
        _ => return Err(wrong()),
    };
    let number: u64 = text.strip_suffix(unit).and_then(|n| n.parse().ok()).ok_or_else(wrong)?;
    // A hundred years fit into every calendar.
    number.checked_mul(seconds).filter(|s| *s <= 36_500 * 86_400).map(Duration::from_secs).ok_or_else(wrong)
}

pub fn isolation(text: &str) -> Result<Isolation, String> {
    match text {
        "auto" => Ok(Isolation::Auto),
        "bwrap" => Ok(Isolation::Bwrap),
        "landlock" => Ok(Isolation::Landlock),
        "none" => Ok(Isolation::None),
        _ => Err("one of auto, bwrap, landlock, none".into()),
    }
}

pub fn publish(text: &str) -> Result<Publish, String> {
    match text {
        "none" => Ok(Publish::None),
        "push" => Ok(Publish::Push),
        "pr" => Ok(Publish::Pr),
        _ => Err("one of none, push, pr".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_a_unit() {
        let seconds = |text: &str| age(text).map(|age| age.as_secs());
        assert_eq!(seconds("30m"), Ok(1800));
        assert_eq!(seconds("14d"), Ok(14 * 86_400));
        for wrong in ["", "d", "14", "-1d", "1.5d", "14x", "99999999999999999999d", "999999999w", "1é"] {
            assert!(age(wrong).is_err(), "{wrong}");
        }
    }
}
