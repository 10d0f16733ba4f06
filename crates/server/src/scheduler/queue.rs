//! The queue on disk: one file per run.

use crate::http::problem::Problem;
use crate::live::Driven;
use crate::row::RunRow;
use jiff::Timestamp;
use ralph_loop_app::RunRequest;
use ralph_loop_domain::vars::Vars;
use ralph_loop_journal::folder::artifacts;
use ralph_loop_journal::folder::layout::StateHome;
use ralph_loop_journal::folder::registry;
use ralph_loop_protocol::id::RunId;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Size limit of one file.
const FILE_MAX: u64 = 8 * 1024 * 1024;
/// Server variables that its runs don't get.
const OWN: &[&str] = &["RALPH_SECRETS_KEY", "RALPH_SERVE_TOKEN", "RALPH_DB_URL"];

/// Login for the code host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AuthSource {
    /// A personal token.
    Pat,
    /// A GitHub App.
    App,
    /// None.
    None,
}

/// A queued run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Queued {
    /// Its future id.
    pub id: RunId,
    /// The task's short title.
    pub title: String,
    pub request: RunRequest,
    pub person: String,
    /// Its sandbox provider.
    pub provider: String,
    /// Its folder or URL.
    pub repo: String,
    pub at: Timestamp,
    /// Login for the code host; `None` uses what is available.
    #[serde(default)]
    pub auth: Option<AuthSource>,
    /// Default and fallback model profiles.
    #[serde(default)]
    pub profiles: (Option<String>, Option<String>),
    /// Why it was rejected at its turn.
    #[serde(default)]
    pub problem: Option<String>,
    /// Its limits for iterations and dollars, as far as they are known before it starts.
    #[serde(default)]
    pub limits: (u32, f64),
}

impl Queued {
    /// Its row, with its position while it waits.
    pub fn row(&self, place: Option<u32>) -> RunRow {
        let status = if self.problem.is_some() { "failed" } else { "queued" };
        RunRow {
            status: status.to_owned(),
            person: Some(self.person.clone()),
            provider: self.provider.clone(),
            problem: self.problem.clone(),
            ended_at: self.problem.is_some().then_some(self.at),
            max_iterations: self.limits.0,
            budget_usd: self.limits.1,
            queued: place,
            now: (self.places() > 1).then(|| format!("a race of {} waits for room", self.places())),
            ..RunRow::waiting(self.id.as_str(), &self.title, &self.repo, self.at)
        }
    }

    /// RunPaths it takes: one per run of a race.
    pub(crate) fn places(&self) -> usize {
        self.request.race.as_ref().map_or(1, |race| race.runs.len().max(1))
    }

    /// Whether it is this run, or a race with it.
    pub(super) fn has(&self, run: &str) -> bool {
        let races =
            self.request.race.as_ref().is_some_and(|race| race.runs.iter().any(|id| id.as_str() == run));
        self.id.as_str() == run || races
    }

    /// The places it takes once started.
    pub(super) fn load(&self) -> Vec<Driven> {
        let place = |run: &RunId| Driven {
            run: run.to_string(),
            provider: self.provider.clone(),
            repo: self.repo.clone(),
            person: Some(self.person.clone()),
        };
        match &self.request.race {
            Some(race) if !race.runs.is_empty() => race.runs.iter().map(place).collect(),
            _ => vec![place(&self.id)],
        }
    }

    /// Its process's variables: the server's plus configured secrets, minus the server's own.
    pub(super) fn variables(&self, vars: &Vars, secrets: Vec<(String, String)>) -> Vars {
        let left_out = |name: &str| {
            let token = matches!(name, "GITHUB_PAT" | "GITHUB_TOKEN" | "GH_TOKEN");
            let app = name.starts_with("GITHUB_APP_");
            OWN.contains(&name)
                || match self.auth {
                    None => false,
                    Some(AuthSource::Pat) => app,
                    Some(AuthSource::App) => token,
                    Some(AuthSource::None) => token || app,
                }
        };
        let all = vars.with(secrets);
        let kept: Vars = all.iter().filter(|(name, _)| !name.to_str().is_some_and(left_out)).collect();
        let (usual, fallback) = &self.profiles;
        let named = [("RALPH_DEFAULT_MODEL_PROFILE", usual), ("RALPH_FALLBACK_MODEL_PROFILE", fallback)];
        kept.with(named.into_iter().filter_map(|(name, profile)| Some((name, profile.clone()?))))
    }
}

/// The queue's folder.
#[derive(Debug)]
pub(super) struct Queue(PathBuf);

impl Queue {
    pub(super) fn at(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    fn file(&self, run: &str) -> PathBuf {
        self.0.join(format!("{run}.json"))
    }

    pub(super) fn save(&self, queued: &Queued) -> Result<(), Problem> {
        let text = serde_json::to_vec(queued).unwrap_or_default();
        Ok(artifacts::write_durable(&self.file(queued.id.as_str()), &text)?)
    }

    pub(super) fn remove(&self, run: &str) {
        let _ = std::fs::remove_file(self.file(run));
    }

    /// Waiting runs, oldest first, without started ones.
    pub(super) fn load(&self, home: &StateHome) -> Vec<Queued> {
        let mut found = read_queue(&self.0);
        found.retain(|queued| {
            let begun = registry::find(home, &queued.id).is_some();
            if begun {
                self.remove(queued.id.as_str());
            }
            !begun
        });
        found
    }
}

/// All runs queued in this folder, oldest first.
pub(crate) fn read_queue(folder: &Path) -> Vec<Queued> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<Queued> = entries
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|end| end == "json"))
        .filter_map(|entry| {
            serde_json::from_slice(&ralph_loop_safe_fs::read_plain(entry.path(), FILE_MAX).ok()?).ok()
        })
        .collect();
    found.sort_by(|a: &Queued, b: &Queued| (a.at, &a.id).cmp(&(b.at, &b.id)));
    found
}
