//! One run as lists show it.

use jiff::Timestamp;
use ralph_loop_app::adopt::is_of_fleet;
use ralph_loop_app::read::facts::RunSnapshot;
use ralph_loop_app::start::asked_by;
use ralph_loop_domain::state::{RunState, Stage};
use ralph_loop_domain::view;
use ralph_loop_journal::folder::registry::Registration;
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_protocol::money::Cost;
use ralph_loop_protocol::outcome::HumanReason;
use ralph_loop_protocol::proof::level::ProofLevel;
use ralph_loop_task::spec::WorkspaceKind;
use serde::{Deserialize, Serialize};

/// One run as lists show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunRow {
    /// Its id.
    pub id: String,
    /// The title of its task.
    pub task: String,
    /// The same as `task`, under the name used by views.
    pub title: String,
    /// The folder it was started from.
    pub repo: String,
    /// The branch or ref with its work.
    pub branch: Option<String>,
    /// The status word; `gone` if its folder is missing, `unreadable` if its journal is damaged.
    pub status: String,
    /// The current or last iteration.
    pub iteration: u32,
    /// Iteration limit.
    pub max_iterations: u32,
    /// The score of the last iteration.
    pub loop_score: Option<f64>,
    /// What it has cost.
    #[serde(flatten)]
    pub cost: Cost,
    /// Cost limit.
    pub budget_usd: f64,
    /// Criteria that are met.
    pub criteria_met: u32,
    /// Criteria of the task.
    pub criteria_total: u32,
    /// The current or last agent.
    pub agent: Option<String>,
    /// The chosen model, if there is one.
    pub model: Option<String>,
    /// The sandbox provider.
    pub provider: String,
    /// What users may do to it.
    pub mode: String,
    /// The pull request.
    pub pr_url: Option<String>,
    /// Whether it needs the user.
    pub needs_you: bool,
    /// When it was requested.
    pub created_at: Timestamp,
    /// When something last happened, including output.
    pub updated_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Who requested it in the dashboard; null for a terminal.
    pub person: Option<String>,
    /// Whether a process drives it.
    pub driven: bool,
    /// The problem, if there is one.
    pub problem: Option<String>,
    /// Its position in the queue, if it hasn't started.
    pub queued: Option<u32>,
    /// The current activity, question or result in one sentence without ages.
    #[serde(default)]
    pub now: Option<String>,
    /// The number of the pull request.
    #[serde(default)]
    pub pr_number: Option<u64>,
    /// Whether the pull request is a draft.
    #[serde(default)]
    pub pr_draft: bool,
    /// The proof level, once the final check has passed.
    #[serde(default)]
    pub proof_level: Option<ProofLevel>,
    /// What it needs the user for.
    #[serde(default)]
    pub needs: Option<HumanReason>,
    /// Its tests, if its checks report any.
    #[serde(default)]
    pub tests: Option<RowTests>,
}

/// Tests of a run, over its last iterations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RowTests {
    /// Passing tests after the last iteration that reported some.
    pub passed: u64,
    /// Failing ones.
    pub failed: u64,
    /// Passing tests after each of the last iterations, oldest first; null if an iteration reported none.
    pub series: Vec<Option<u64>>,
}

/// Iterations in [`RowTests::series`].
const SERIES_MAX: usize = 12;

impl RowTests {
    fn of(state: &RunState) -> Option<Self> {
        let history = &state.iterations.history;
        let last = history.iter().rev().find_map(|one| one.tests)?;
        let recent = history.iter().skip(history.len().saturating_sub(SERIES_MAX));
        let series = recent.map(|one| one.tests.map(|tests| tests.passed)).collect();
        Some(Self { passed: last.passed, failed: last.failed, series })
    }
}

/// The folder that it was started from; for a run of another machine, what it was cloned from.
fn repo(reading: &RunSnapshot) -> String {
    match &reading.state.spec.place {
        WorkspaceKind::Clone { from, .. } if is_of_fleet(&reading.entry.run_dir()) => from.clone(),
        _ => reading.state.spec.origin.display().to_string(),
    }
}

impl RunRow {
    /// The row of a run.
    pub fn of(reading: &RunSnapshot, person: Option<String>) -> Self {
        let (state, spec) = (&reading.state, &reading.state.spec);
        let current = state.iterations.current.as_ref();
        let last = state.iterations.history.back();
        let agent = current.map(|c| &c.agent).or(last.map(|l| &l.agent)).or(state.agents.last_agent.as_ref());
        let configured = agent.and_then(|name| spec.settings.agent(name)).and_then(|a| a.model.clone());
        let met = spec.task.criteria.iter().filter(|c| state.work.met.contains(&c.id)).count();
        let published = || state.result.published.as_ref().and_then(|p| p.pr_url.clone());
        Self {
            id: spec.run_id.to_string(),
            task: spec.task.title.clone(),
            title: spec.task.title.clone(),
            repo: repo(reading),
            branch: view::branch(state).or_else(|| view::work_ref(state)),
            status: reading.status().to_string(),
            iteration: reading.iteration(),
            max_iterations: spec.settings.budgets.max_iterations,
            loop_score: last.map(|l| l.loop_score),
            cost: state.cost(),
            budget_usd: spec.settings.budgets.max_cost.dollars(),
            criteria_met: u32::try_from(met).unwrap_or(u32::MAX),
            criteria_total: u32::try_from(spec.task.criteria.len()).unwrap_or(u32::MAX),
            agent: agent.map(ToString::to_string),
            model: current.and_then(|c| c.model.clone()).or(configured),
            provider: spec.settings.sandbox.provider().as_str().to_owned(),
            mode: spec.settings.mode.as_str().to_owned(),
            pr_url: state.handover.pr.as_ref().map(|pr| pr.url.clone()).or_else(published),
            needs_you: state.people.needs_human.is_some() && state.result.finished.is_none(),
            created_at: spec.created_at,
            updated_at: reading.last_activity(),
            ended_at: state.result.finished.as_ref().map(|end| end.at),
            person,
            driven: reading.driver.is_some(),
            problem: None,
            queued: None,
            now: Some(now(reading)),
            pr_number: state.handover.pr.as_ref().map(|pr| pr.number),
            pr_draft: state.handover.pr.as_ref().is_some_and(|pr| pr.draft),
            proof_level: state
                .result
                .proof
                .as_ref()
                .filter(|proof| proof.passed)
                .and_then(|proof| proof.level),
            needs: state
                .people
                .needs_human
                .as_ref()
                .filter(|_| state.result.finished.is_none())
                .map(|need| need.reason),
            tests: RowTests::of(state),
        }
    }

    /// The row of an unreadable run: its folder is gone, or its journal is damaged.
    pub fn unreadable(entry: &Registration, status: &str, problem: String) -> Self {
        Self {
            status: status.to_owned(),
            problem: Some(problem),
            cost: Cost::UNKNOWN,
            person: asked_by::read(&entry.run_dir()),
            ..Self::waiting(
                entry.run_id.as_str(),
                &entry.title,
                &entry.origin.display().to_string(),
                entry.created_at,
            )
        }
    }

    /// The row of a queued run.
    pub fn waiting(id: &str, title: &str, repo: &str, at: Timestamp) -> Self {
        Self {
            id: id.to_owned(),
            task: title.to_owned(),
            title: title.to_owned(),
            repo: repo.to_owned(),
            branch: None,
            status: "queued".to_owned(),
            iteration: 0,
            max_iterations: 0,
            loop_score: None,
            cost: Cost::default(),
            budget_usd: 0.0,
            criteria_met: 0,
            criteria_total: 0,
            agent: None,
            model: None,
            provider: "local".to_owned(),
            mode: "autonomous".to_owned(),
            pr_url: None,
            needs_you: false,
            created_at: at,
            updated_at: at,
            ended_at: None,
            person: None,
            driven: false,
            problem: None,
            queued: None,
            now: None,
            pr_number: None,
            pr_draft: false,
            proof_level: None,
            needs: None,
            tests: None,
        }
    }

    /// Whether nothing more happens to it on its own.
    pub fn is_over(&self) -> bool {
        self.ended_at.is_some() || matches!(self.status.as_str(), "gone" | "unreadable")
    }

    /// The searched text.
    pub fn search_text(&self) -> String {
        let branch = self.branch.as_deref().unwrap_or_default();
        let text = format!("{} {} {} {branch}", self.id, self.task, self.repo).to_lowercase();
        ralph_loop_protocol::display::text::head(&text, SEARCH_MAX).to_owned()
    }
}

/// Bytes searched; a Postgres index takes at most 2,704 per row.
const SEARCH_MAX: usize = 2000;

/// Size limit of the sentence.
const NOW_MAX: usize = 240;

/// The current activity, question or result. Without ages, so that a rebuilt index has the same rows.
fn now(reading: &RunSnapshot) -> String {
    let state = &reading.state;
    let current = state.iterations.current.as_ref();
    let words = if let Some(end) = &state.result.finished {
        end.summary.clone()
    } else if let Some(need) = &state.people.needs_human {
        need.message.clone()
    } else if reading.driver.is_none() {
        "not running; resume to continue".to_owned()
    } else if let Some(wait) = &state.wait {
        match (&state.people.paused_by, wait.until) {
            (Some(who), None) => format!("paused by {who}"),
            _ => wait.reason.clone(),
        }
    } else {
        match current {
            Some(current) if current.stage == Stage::Working => match reading.activity() {
                Some(activity) => format!("{} · {activity}", current.agent),
                None => format!("{} is working", current.agent),
            },
            Some(current) => {
                format!("checking what {} did in iteration {}", current.agent, current.iteration)
            }
            None if state.baseline.is_none() => "preparing the workspace".to_owned(),
            None if state.result.proof.as_ref().is_some_and(|proof| proof.passed) => {
                "handing the result over".to_owned()
            }
            None if state.result.candidate => "final check of the result".to_owned(),
            None => "the next session is about to start".to_owned(),
        }
    };
    one_line(&words, NOW_MAX)
}
