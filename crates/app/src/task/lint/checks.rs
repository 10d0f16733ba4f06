//! Which checks decide a task, from every source, each with its place. Runs, the linter, the doctor and the screens
//! show this list.

use crate::assumptions::Assumptions;
use crate::config::settings;
use crate::config::settings::LoadedSettings;
use crate::environment::Environment;
use crate::error::AppError;
use crate::read::find;
use crate::request::Overrides;
use crate::task::task_source::TaskSource;
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_task::config::{ConfigFile, Settings, VerifierConfig};
use ralph_loop_task::criterion::Span;
use ralph_loop_task::dialect::TaskFile;
use ralph_loop_task::dialect::adopt;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// A check that must pass.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskCheck {
    pub verifier: VerifierConfig,
    pub source: CheckSource,
}

impl TaskCheck {
    /// The command and its source, on one line.
    pub fn line(&self) -> String {
        format!("{} ({})", one_line(&self.verifier.command_line(), 160), self.source)
    }
}

/// Where a check is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckSource {
    Task { file: String, place: Span },
    Config { file: String, verifier: String },
    Detected { file: String, others: Vec<String> },
    Flag,
}

impl fmt::Display for CheckSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Task { file, place } => write!(f, "{file}:{}", place.line),
            Self::Config { file, verifier } => write!(f, "{file}: verifiers.{verifier}"),
            Self::Detected { file, others } => {
                write!(f, "from {file}; `--verify CMD` chooses")?;
                others.first().map_or(Ok(()), |other| write!(f, "; also found: {other}"))
            }
            Self::Flag => write!(f, "--verify"),
        }
    }
}

/// The checks in a task file, with their positions.
#[derive(Debug, Clone, Default)]
pub struct WrittenChecks {
    pub file: String,
    pub places: BTreeMap<String, Span>,
}

impl WrittenChecks {
    pub fn of(task: &TaskFile) -> Self {
        Self { file: task.source.clone(), places: task.check_places() }
    }
}

/// The checks of a task in its repo.
pub fn of_task(
    env: &Environment,
    source: &TaskSource,
    task: Option<&TaskFile>,
) -> Result<Vec<TaskCheck>, AppError> {
    let top = find::top(&source.folder);
    let loaded = settings::load(env, &top)?;
    let (overrides, mut assumptions) = (Overrides::default(), Assumptions::default());
    let in_task = task.map(adopt::checks).unwrap_or_default();
    let place = (top.as_path(), source.folder.as_path());
    let file = join(env, place, loaded.file.clone(), in_task, &overrides, &mut assumptions);
    let written = task.map(WrittenChecks::of).unwrap_or_default();
    Ok(sourced(&file.resolve(), &written, &loaded, &assumptions, &overrides))
}

/// Joins configuration and task, and detects the repo's test command if neither of them, nor a flag, has a check.
/// Equal checks appear once.
pub fn join(
    env: &Environment,
    place: (&Path, &Path),
    mut config: ConfigFile,
    task: ConfigFile,
    overrides: &Overrides,
    assumptions: &mut Assumptions,
) -> ConfigFile {
    let unchecked = |file: &ConfigFile| file.verifiers.as_ref().is_none_or(Vec::is_empty);
    if overrides.verify.is_empty()
        && overrides.checks.is_empty()
        && unchecked(&config)
        && unchecked(&task)
        && config.required_verifiers.as_ref().is_none_or(|names| *names == ["tests"])
    {
        assumptions.add_check(env, place, &mut config);
    }
    config.with_task(task)
}

/// The checks of `--verify`.
pub(crate) fn verifiers_of(commands: &[String]) -> Vec<VerifierConfig> {
    commands
        .iter()
        .enumerate()
        .map(|(n, command)| {
            let name = if n == 0 { "tests".into() } else { format!("check-{}", n + 1) };
            VerifierConfig::command(name, vec!["sh".into(), "-c".into(), command.clone()])
        })
        .collect()
}

/// The required checks of a run's settings, in order, each with its source.
pub(crate) fn sourced(
    settings: &Settings,
    written: &WrittenChecks,
    loaded: &LoadedSettings,
    assumptions: &Assumptions,
    overrides: &Overrides,
) -> Vec<TaskCheck> {
    let flags: Vec<VerifierConfig> =
        verifiers_of(&overrides.verify).into_iter().chain(overrides.checks.iter().cloned()).collect();
    let of_user = |name: &str| loaded.user.verifiers.iter().flatten().any(|own| own.name == name);
    let of_repo = |name: &str| loaded.repo_verifiers.iter().any(|own| own == name);
    let source = |verifier: &VerifierConfig| {
        if flags.iter().any(|flag| flag.name == verifier.name) {
            return CheckSource::Flag;
        }
        if let Some(place) = written.places.get(&verifier.name) {
            return CheckSource::Task { file: written.file.clone(), place: *place };
        }
        if let Some(first) = assumptions.checks.first().filter(|first| first.argv == verifier.command_argv) {
            let others = assumptions.checks[1..].iter().map(|other| other.command_line()).collect();
            return CheckSource::Detected { file: first.source.clone().into_owned(), others };
        }
        // A configured check whose name the task uses for another one was renamed.
        let name = verifier.name.trim_start_matches("config-");
        let file = if of_user(name) && !of_repo(name) { "your config.json" } else { ".ralph/config.json" };
        CheckSource::Config { file: file.to_owned(), verifier: name.to_owned() }
    };
    let check =
        |verifier: &VerifierConfig| TaskCheck { verifier: verifier.clone(), source: source(verifier) };
    settings.required().map(check).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ralph_loop_task::dialect::{Dialect, TaskTexts};

    fn lines(files: &[(&str, &str)], dialect: Dialect) -> Vec<String> {
        let top = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = top.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let name = dialect.main_file();
        let text = std::fs::read_to_string(top.path().join(name)).unwrap();
        let source =
            TaskSource { dialect, folder: top.path().to_owned(), files: TaskTexts::new(name, text.as_str()) };
        let task = ralph_loop_task::dialect::read(dialect, &source.files);
        let env = Environment::new(Default::default(), "/");
        let checks = of_task(&env, &source, task.as_ref()).unwrap();
        checks.iter().map(TaskCheck::line).collect()
    }

    #[test]
    fn every_source_is_named_and_equal_checks_appear_once() {
        const PROMPT: (&str, &str) = ("PROMPT.md", "# T\n## Verification\n- `make test`\n- `./app`\n");
        const CARGO: (&str, &str) = ("Cargo.toml", "[package]\nname = \"a\"\n");
        const CONFIG: (&str, &str) = (
            ".ralph/config.json",
            r#"{"verifiers":[{"name":"tests","command_argv":["make","test"]},{"name":"lint","command_argv":["make","lint"]}]}"#,
        );
        let own = ["make test (PROMPT.md:3)", "./app (PROMPT.md:4)"];
        assert_eq!(lines(&[PROMPT], Dialect::PromptMd), own);
        assert_eq!(lines(&[PROMPT, CARGO], Dialect::PromptMd), own, "detected only if nothing else checks");
        assert_eq!(
            lines(&[PROMPT, CONFIG], Dialect::PromptMd),
            ["make test (.ralph/config.json: verifiers.tests)", "./app (PROMPT.md:4)"]
        );
        let prose = ("PROMPT.md", "# T\n## Verification\nRun the tests.\n");
        assert_eq!(
            lines(&[prose, CARGO], Dialect::PromptMd),
            ["cargo test (from Cargo.toml; `--verify CMD` chooses)"]
        );
        assert!(lines(&[prose], Dialect::PromptMd).is_empty());
        let json = (
            "ralph.json",
            r#"{"task":"t","acceptance_criteria":[
{"type":"command_output","command":"./app","contains":"42"}]}"#,
        );
        assert_eq!(
            lines(&[json, CONFIG], Dialect::RalphJson),
            ["./app prints `42` (ralph.json:2)", "make test (.ralph/config.json: verifiers.tests)"]
        );
        let plan = (
            "ralph/tasks.json",
            r#"{"verifyCommands":["make test",
{"command":"./app","equals":"42"}],"userStories":[{"id":"a","title":"t","acceptanceCriteria":["x"]}]}"#,
        );
        assert_eq!(
            lines(&[plan], Dialect::Plan),
            ["make test (ralph/tasks.json:1)", "./app prints only `42` (ralph/tasks.json:1)"]
        );
    }
}
