//! A run's result, for showing it or applying it to a checkout.

use crate::config::dotenv_lines::DotenvWatch;
use crate::environment::{Environment, dotenv_pairs};
use crate::error::AppError;
use crate::read::facts::RunSnapshot;
use crate::read::{find, seen};
use ralph_loop_domain::state::RunState;
use ralph_loop_domain::text::change_text::ChangeText;
use ralph_loop_git::hand_back::hooks::{self, UserHooks};
use ralph_loop_git::{ApplyMode, ApplyReport, Repo, RunCommits};
use ralph_loop_task::spec::WorkspaceKind;
use std::path::Path;

/// A run's recorded work.
#[derive(Debug)]
pub struct RunResultFiles {
    pub reading: RunSnapshot,
    /// The repo with its commits: the user's, or the run's clone.
    pub repo: Repo,
    /// Its commits.
    pub work: RunCommits,
}

#[derive(Debug)]
pub enum RunChanges {
    Recorded(Box<RunResultFiles>),
    /// It changed no file.
    Nothing(Box<RunSnapshot>),
}

impl RunResultFiles {
    /// The run `name`, or the latest of the folder.
    pub fn open(env: &Environment, folder: &Path, name: Option<&str>) -> Result<RunChanges, AppError> {
        let reading = RunSnapshot::load(env, find::run(env, folder, name)?)?;
        let run = reading.entry.run_id.clone();
        let spec = &reading.state.spec;
        let places = [&spec.origin, spec.home(), &reading.entry.workspace].map(|place| place.to_owned());
        for place in &places {
            let Ok(repo) = Repo::discover(env.vars(), place) else { continue };
            if let Some(work) = RunCommits::read(&repo, &run)? {
                let work = with_first_run(work, &repo, &reading)?;
                return Ok(RunChanges::Recorded(Box::new(Self { reading, repo, work })));
            }
        }
        // After a clean-up, the branch still holds the work.
        if let Ok(repo) = Repo::discover(env.vars(), &reading.state.spec.origin)
            && let Some(work) = on_own_branch(&repo, &reading)?
        {
            let work = with_first_run(work, &repo, &reading)?;
            return Ok(RunChanges::Recorded(Box::new(Self { reading, repo, work })));
        }
        let over = reading.state.iterations.count > 0 || reading.state.result.finished.is_some();
        if over && reading.state.work.commit.is_none() {
            return Ok(RunChanges::Nothing(Box::new(reading)));
        }
        let error = AppError::usage(format!("run {run} has recorded no work"));
        Err(match reading.state.iterations.count {
            0 => error.hint("its first iteration hasn't ended; run `ralph status` to watch it"),
            _ => error.hint("its commits were cleaned up; run `ralph show` to see what it did"),
        })
    }

    /// Applies the result to `into` or the folder the run was started from. Returns which of the user's git
    /// hooks didn't run on the new commits.
    pub fn apply(
        &self,
        env: &Environment,
        into: Option<&Path>,
        how: ApplyMode<'_>,
    ) -> Result<(ApplyReport, Option<UserHooks>), AppError> {
        let (spec, run) = (&self.reading.state.spec, &self.reading.entry.run_id);
        if let Some(driver) = &self.reading.driver {
            return Err(AppError::usage(format!(
                "run {run} is active (process {}), so it has no result yet",
                driver.pid
            ))
            .hint(format!(
                "`ralph stop {run}` ends it after its session; `ralph diff {run}` shows what there is"
            )));
        }
        if into.is_none() && is_own_checkout(env, &spec.origin) {
            let branch = spec.branch.as_deref().unwrap_or("HEAD");
            return Err(AppError::usage(format!(
                "run {run} wasn't started in one of your repos, so it has no checkout to apply to"
            ))
            .hint(format!(
                "`ralph apply {run} --into DIR` puts it into your own clone; there, `git fetch {} {branch}` does, too; `ralph open {run} --files` shows the files",
                spec.home().display()
            )));
        }
        let origin = Repo::discover(env.vars(), into.unwrap_or(&spec.origin))?;
        let fetched;
        let elsewhere = into.is_some() || matches!(spec.place, WorkspaceKind::Clone { .. });
        let work = if elsewhere && self.repo.top != origin.top {
            let brought = RunCommits::fetch(&origin, &self.repo, run).map_err(refused)?;
            fetched = brought.map(|work| with_first_run(work, &origin, &self.reading)).transpose()?;
            fetched.as_ref().unwrap_or(&self.work)
        } else {
            &self.work
        };
        let pairs = || dotenv_pairs(env.vars(), &origin.top);
        let watch = DotenvWatch::begin(&env.state_home()?, &origin.top, run.as_str(), &pairs());
        // In place, each iteration was already copied into the folder, except files that the user changed too.
        let handed = into.is_none()
            && spec.place == WorkspaceKind::InPlace
            && self.reading.state.work.kept_back.is_empty()
            && !self.reading.state.work.cut;
        let taken = work.apply(&origin, run, how, handed).map_err(refused);
        watch.end(&pairs());
        let taken = taken?;
        if !taken.commits.is_empty() {
            seen::mark_taken(&self.reading.entry);
        }
        let made = !taken.commits.is_empty() && !matches!(how, ApplyMode::Branch(_));
        let hooks = made.then(|| hooks::of_a_commit(&origin, &taken.files)).flatten();
        Ok((taken, hooks))
    }

    /// Hash and title of the commits that `apply` made.
    pub fn titles(
        &self,
        env: &Environment,
        into: Option<&Path>,
        commits: &[String],
    ) -> Result<Vec<String>, AppError> {
        if commits.is_empty() {
            return Ok(Vec::new());
        }
        let repo = Repo::discover(env.vars(), into.unwrap_or(&self.reading.state.spec.origin))?;
        let mut args = vec!["log", "--no-walk=unsorted", "--format=%h %s"];
        args.extend(commits.iter().map(String::as_str));
        Ok(repo
            .git()
            .call(args)
            .run()
            .map_err(ralph_loop_git::Error::from)?
            .text()
            .lines()
            .map(str::to_owned)
            .collect())
    }

    /// A commit message for the whole result: the agents' last summary, else the task. An agent's claim doesn't name a
    /// result that isn't proven.
    pub fn message(&self) -> String {
        let state = &self.reading.state;
        if state.result.proof.as_ref().is_none_or(|proof| !proof.passed) {
            return format!("{} (not proven)", state.spec.task.title);
        }
        let changed = state.iterations.history.iter().rev().filter(|it| it.files > 0);
        let said = changed.into_iter().find_map(|it| ChangeText::of_words(&it.message));
        match said {
            Some(text) => text.message(),
            None => state.spec.task.title.clone(),
        }
    }
}

/// A fork's result is the first run's up to the fork, plus its own.
fn with_first_run(work: RunCommits, repo: &Repo, reading: &RunSnapshot) -> Result<RunCommits, AppError> {
    let from = reading.state.spec.forked_from.as_ref();
    match from.and_then(|from| Some((from.start.clone()?, from.snapshot.clone()))) {
        Some((head, start)) => Ok(work.since(repo, &reading.entry.run_id, head, start)?),
        None => Ok(work),
    }
}

fn on_own_branch(repo: &Repo, reading: &RunSnapshot) -> Result<Option<RunCommits>, AppError> {
    let state = &reading.state;
    let (Some(branch), Some(baseline)) = (&state.spec.branch, &state.baseline) else { return Ok(None) };
    // A fork without changes has what it started with.
    let began = state.spec.forked_from.as_ref().map(|_| &baseline.head);
    let Some(work) = state.work.commit.as_ref().or(began) else { return Ok(None) };
    Ok(RunCommits::on_branch(repo, branch, &baseline.head, work)?)
}

/// Whether a folder is a checkout made for a task's repo or `--clone`, not the user's own.
pub fn is_own_checkout(env: &Environment, origin: &Path) -> bool {
    env.state_home().is_ok_and(|home| origin.starts_with(home.path().join("sources")))
}

/// Whether the run's start commit exists in the folder it was started from; not so for clones of another
/// repo.
pub fn knows_start(env: &Environment, state: &RunState) -> bool {
    let Some(baseline) = &state.baseline else { return false };
    let name = format!("{}^{{commit}}", baseline.head);
    Repo::discover(env.vars(), &state.spec.origin).is_ok_and(|repo| {
        let found = repo.git().call(["cat-file", "-e", &name]).accept(&[1, 128]).run();
        found.is_ok_and(|found| found.code == 0)
    })
}

fn refused(error: ralph_loop_git::Error) -> AppError {
    let hint = error.hint();
    let kind = match error {
        ralph_loop_git::Error::Refused { .. } => AppError::needs_person(error.to_string()),
        other => AppError::environment(other.to_string()),
    };
    AppError { hint, ..kind }
}
