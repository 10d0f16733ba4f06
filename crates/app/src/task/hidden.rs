//! Hidden criteria: checks in the user's `.ralph/hidden/` that no agent sees, so that none can fit its work to
//! them. A run keeps its own copy in the state folder, which no sandbox shows.

use crate::error::AppError;
use crate::trust::repo_file;
use ralph_loop_core::CancelToken;
use ralph_loop_domain::ports::{
    CustomCheck, ExecEnd, ExecRequest, ExecSink, Sandbox, StopCause, Stream, WriteMode,
};
use ralph_loop_git::Repo;
use ralph_loop_journal::folder::artifacts;
use ralph_loop_journal::folder::layout::{RalphDir, StateHome};
use ralph_loop_proof::report::scanner::TestScanner;
use ralph_loop_protocol::id::RunId;
use ralph_loop_task::config::{Expect, Settings, VerifierConfig, is_inside};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The criteria in `.ralph/`.
const FILE: &str = "hidden/criteria.json";

/// One hidden criterion, as the user writes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    /// For the user; nothing shows it.
    #[serde(default, rename = "description")]
    _description: Option<String>,
    command: String,
    /// Files next to it, which the check finds at the same paths in the repo.
    #[serde(default)]
    files: Vec<String>,
    #[serde(default = "half_an_hour")]
    timeout_seconds: u64,
}

fn half_an_hour() -> u64 {
    1800
}

/// A criterion with its files, as a run keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HiddenCriterion {
    command: String,
    files: BTreeMap<String, String>,
    timeout_seconds: u64,
}

/// Reads the hidden criteria of a repo.
pub(crate) fn read(repo: &Repo) -> Result<Vec<HiddenCriterion>, AppError> {
    let path = RalphDir::of(&repo.top).join(FILE);
    let text = match repo_file::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(repo_file::unreadable(&path, &error)),
    };
    let tracked = repo.git().call(["ls-files", "--", ".ralph/hidden"]).run();
    if let Some(file) = tracked.map_err(ralph_loop_git::Error::from)?.text().lines().next() {
        return Err(AppError::usage(format!("`{file}` is tracked by git, so agents can read it"))
            .hint("take it out: `git rm -r --cached .ralph/hidden`"));
    }
    parse(&path, &text)
}

fn parse(path: &Path, text: &[u8]) -> Result<Vec<HiddenCriterion>, AppError> {
    let all: Vec<Written> = serde_json::from_slice(text).map_err(|error| {
        let place = format!("{}:{}:{}", path.display(), error.line(), error.column());
        AppError::usage(format!("{place}: {error}")).hint(
            "write a list such as `[{ \"command\": \"pytest test_limits.py\", \"files\": [\"test_limits.py\"] }]`",
        )
    })?;
    all.into_iter().map(|one| with_files(path, one)).collect()
}

fn with_files(path: &Path, one: Written) -> Result<HiddenCriterion, AppError> {
    let folder = path.parent().unwrap_or(path);
    let mut files = BTreeMap::new();
    for name in one.files {
        if !is_inside(&name) {
            return Err(AppError::usage(format!("{}: `{name}` isn't a file in this folder", path.display()))
                .hint("`files` names files below `.ralph/hidden/`, without `..`"));
        }
        let text = repo_file::read_text(&folder.join(&name)).map_err(|error| {
            AppError::usage(format!("{}: can't read `{name}`: {error}", path.display())).hint(format!(
                "put the file at `{}`, or take it out of `files`",
                folder.join(&name).display()
            ))
        })?;
        files.insert(name, text);
    }
    Ok(HiddenCriterion { command: one.command, files, timeout_seconds: one.timeout_seconds })
}

fn name(number: usize) -> String {
    format!("hidden-{}", number + 1)
}

/// Adds required checks that say nothing about what they run.
pub(crate) fn add_to(settings: &mut Settings, criteria: &[HiddenCriterion]) {
    for name in (0..criteria.len()).map(name) {
        settings.verifiers.retain(|known| known.name != name);
        settings.required_verifiers.retain(|known| *known != name);
        let check = VerifierConfig::command(name.clone(), Vec::new());
        settings.verifiers.push(VerifierConfig { expect: Some(Expect::Custom), ..check });
        settings.required_verifiers.push(name);
    }
}

/// Where a run keeps its hidden criteria.
pub(crate) fn kept_at(home: &StateHome, run: &RunId) -> PathBuf {
    home.path().join("hidden").join(format!("{run}.json"))
}

/// Keeps them for a run, so that a resumed one has the same.
pub(crate) fn keep(home: &StateHome, run: &RunId, criteria: &[HiddenCriterion]) -> Result<(), AppError> {
    if criteria.is_empty() {
        return Ok(());
    }
    let (path, text) = (kept_at(home, run), serde_json::to_vec(criteria).unwrap_or_default());
    let folder = path.parent().unwrap_or(&path);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| {
        AppError::environment(format!("cannot make the folder `{}`: {error}", folder.display()))
    })?;
    artifacts::write_atomic(&path, &text)?;
    Ok(())
}

/// The criteria that a run keeps.
pub(crate) fn kept(home: &StateHome, run: &RunId) -> Vec<HiddenCriterion> {
    let text = repo_file::read_own(&kept_at(home, run)).ok();
    text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

/// The checks of a run, by verifier name.
pub(crate) fn checks(
    home: &StateHome,
    run: &RunId,
    cancel: &Arc<CancelToken>,
) -> BTreeMap<String, Box<dyn CustomCheck>> {
    let all = kept(home, run).into_iter().enumerate();
    all.map(|(number, criterion)| {
        let check: Box<dyn CustomCheck> = Box::new(HiddenCheck { criterion, cancel: cancel.clone() });
        (name(number), check)
    })
    .collect()
}

struct HiddenCheck {
    criterion: HiddenCriterion,
    cancel: Arc<CancelToken>,
}

impl CustomCheck for HiddenCheck {
    fn check(&self, sandbox: &dyn Sandbox) -> Result<(), String> {
        self.check_in(sandbox, &[])
    }

    fn is_hidden(&self) -> bool {
        true
    }

    fn check_in(&self, sandbox: &dyn Sandbox, env: &[(String, String)]) -> Result<(), String> {
        // Causes would name files or commands.
        let failed = |_| "it could not be run".to_owned();
        let mut before = Vec::new();
        for (path, text) in &self.criterion.files {
            let path = Path::new(path);
            before.push((path, sandbox.read(path).map_err(failed)?));
            sandbox.write(path, text.as_bytes(), WriteMode::Replace).map_err(failed)?;
        }
        let mut request =
            ExecRequest::new(vec!["sh".to_owned(), "-c".to_owned(), self.criterion.command.clone()]);
        request.timeout = Some(Duration::from_secs(self.criterion.timeout_seconds));
        request.env = vec![("CI".to_owned(), "true".to_owned())];
        request.env.extend(env.iter().cloned());
        let mut sink = Silent { scanner: TestScanner::default(), cancel: &self.cancel };
        let ended = sandbox.exec(&request, &mut sink);
        // The other checks in this checkout don't find the files.
        for (path, bytes) in before {
            match bytes {
                Some(bytes) => sandbox.write(path, &bytes, WriteMode::Replace).map_err(failed)?,
                None => sandbox.remove(path).map_err(failed)?,
            }
        }
        let no_tests = sink.scanner.finish().is_some_and(|tests| tests.executed() == 0);
        match ended {
            Ok(outcome) if outcome.end == ExecEnd::Exited(0) && !no_tests => Ok(()),
            Ok(_) => Err("fail".to_owned()),
            Err(_) => Err("it could not be run".to_owned()),
        }
    }
}

/// Output of a hidden check goes nowhere.
struct Silent<'a> {
    scanner: TestScanner,
    cancel: &'a CancelToken,
}

impl ExecSink for Silent<'_> {
    fn output(&mut self, _: Stream, bytes: &[u8]) {
        self.scanner.feed(bytes);
    }

    fn poll(&mut self) -> ControlFlow<StopCause> {
        match self.cancel.get() {
            Some(_) => ControlFlow::Break(StopCause::Suspended),
            None => ControlFlow::Continue(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn criteria_come_with_their_files_and_a_wrong_one_names_the_fix() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("t.py"), "assert True\n").unwrap();
        let path = dir.path().join("criteria.json");
        let read = |text: &str| parse(&path, text.as_bytes());
        let found =
            read(r#"[{"command": "python3 t.py", "files": ["t.py"], "description": "mine"}]"#).unwrap();
        assert_eq!(found[0].files["t.py"], "assert True\n");
        for (text, words, fix) in [
            (r#"[{"comand": "x"}]"#, "criteria.json:1:10", "write a list"),
            (r#"[{"command": "x", "files": ["../t.py"]}]"#, "`../t.py` isn't a file in this folder", "`..`"),
            (r#"[{"command": "x", "files": ["gone.py"]}]"#, "can't read `gone.py`", "put the file at"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.message.contains(words) && error.next().contains(fix), "{error:?}");
        }
    }

    #[test]
    fn the_settings_of_a_run_say_nothing_about_what_is_checked() {
        let criterion = HiddenCriterion {
            command: "secret-command".to_owned(),
            files: [("secret.py".to_owned(), "secret-text".to_owned())].into(),
            timeout_seconds: 1,
        };
        let mut settings = ralph_loop_task::config::ConfigFile::default().resolve();
        add_to(&mut settings, std::slice::from_ref(&criterion));
        add_to(&mut settings, &[criterion]);
        assert_eq!(settings.required_verifiers.iter().filter(|name| *name == "hidden-1").count(), 1);
        assert!(!serde_json::to_string(&settings).unwrap().contains("secret"));
    }
}
