//! The triggers file: which users may start runs from issues and comments, and what runs on a schedule. Without the file,
//! nothing starts automatically.

use crate::schedule::Cron;
use jiff::tz::TimeZone;
use ralph_loop_task::dialect::Publish;
use serde::Deserialize;

/// The contents of the triggers file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Triggers {
    /// Repos whose issues and comments count.
    pub repos: Vec<RepoTrigger>,
    /// Tasks that start again at certain times.
    pub schedules: Vec<Schedule>,
}

/// What its runs may use.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Runs of it at a time; more wait.
    pub at_once: Option<u32>,
    /// Most iterations of each.
    pub max_iterations: Option<u32>,
    /// Most money of each, in USD.
    pub max_cost_usd: Option<f64>,
    /// Most working time of each.
    pub max_minutes: Option<u64>,
}

/// A repo whose issues and comments count.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RepoTrigger {
    /// `owner/name`.
    pub repo: String,
    /// Where it is cloned from.
    pub clone: String,
    /// An issue with this label becomes a run; none does where it is left out.
    #[serde(default)]
    pub label: Option<String>,
    /// Who may, by their names on the code host.
    pub people: Vec<String>,
    /// Commands that must pass, instead of the repo's own checks.
    #[serde(default)]
    pub verify: Vec<String>,
    /// Labels that the worker must have.
    #[serde(default)]
    pub labels: Vec<String>,
    /// Secrets of the server that its runs are given, by name; none where it is left out.
    #[serde(default)]
    pub secrets: Vec<String>,
    /// What its runs may use.
    #[serde(default)]
    pub limits: Limits,
}

/// A task that starts again at certain times.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// Its name.
    pub name: String,
    /// `minute hour day month weekday`.
    pub cron: String,
    /// The zone of that clock, `Europe/Berlin`; UTC where it is left out.
    #[serde(default)]
    pub time_zone: Option<String>,
    /// Where the repo is cloned from.
    pub clone: String,
    /// What is to be done, as a task file would have it.
    pub task: String,
    /// Commands that must pass.
    #[serde(default)]
    pub verify: Vec<String>,
    /// What becomes of the proven work.
    #[serde(default)]
    pub publish: Option<Publish>,
    /// Labels that the worker must have.
    #[serde(default)]
    pub labels: Vec<String>,
    /// Secrets of the server that its runs are given, by name; none where it is left out.
    #[serde(default)]
    pub secrets: Vec<String>,
    /// What its runs may use.
    #[serde(default)]
    pub limits: Limits,
}

impl Triggers {
    /// Parses the file and checks all of it, so that a mistake shows at once and not when a trigger fires.
    pub fn parse(text: &str) -> Result<Self, String> {
        let triggers: Self = serde_json::from_str(text).map_err(|e| format!("line {}: {e}", e.line()))?;
        for repo in &triggers.repos {
            if repo.people.is_empty() {
                return Err(format!("`{}` allows no users; set `people`", repo.repo));
            }
        }
        for schedule in &triggers.schedules {
            Cron::parse(&schedule.cron).map_err(|why| format!("schedule `{}`: {why}", schedule.name))?;
            schedule.zone().map_err(|why| format!("schedule `{}`: {why}", schedule.name))?;
        }
        let mut names: Vec<&str> = triggers.schedules.iter().map(|schedule| schedule.name.as_str()).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(format!("two schedules are called `{}`", pair[0])),
            None => Ok(triggers),
        }
    }

    /// The repo of this name in the list.
    pub fn repo(&self, name: &str) -> Option<&RepoTrigger> {
        self.repos.iter().find(|repo| repo.repo.eq_ignore_ascii_case(name))
    }

    /// The name of the repo that is cloned from this address.
    pub fn name_of(&self, clone: &str) -> Option<&str> {
        self.repos.iter().find(|repo| repo.clone == clone).map(|repo| repo.repo.as_str())
    }
}

impl Schedule {
    /// The zone of its clock.
    pub fn zone(&self) -> Result<TimeZone, String> {
        match &self.time_zone {
            None => Ok(TimeZone::UTC),
            Some(name) => TimeZone::get(name).map_err(|_| format!("`{name}` isn't a time zone")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_wrong_with_the_file_is_told_at_once() {
        let schedule = |cron: &str, zone: &str| {
            json!({ "schedules": [{ "name": "n", "cron": cron, "time_zone": zone, "clone": "x", "task": "t" }] }).to_string()
        };
        assert!(Triggers::parse(&schedule("0 3 * * *", "Europe/Berlin")).is_ok());
        assert!(Triggers::parse(&schedule("0 3 * *", "UTC")).unwrap_err().contains("five"));
        assert!(
            Triggers::parse(&schedule("0 3 * * *", "Mars/Base")).unwrap_err().contains("isn't a time zone")
        );
        assert!(Triggers::parse(r#"{"repos":[{"repo":"o/r","clone":"x","people":[]}]}"#).is_err());
    }
}
