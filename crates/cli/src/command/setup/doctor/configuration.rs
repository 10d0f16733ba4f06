//! Checks the configuration: valid files, existing checks, a task.

use super::programs::cannot_start;
use super::{Area, DoctorCheck};
use crate::text::words::home_path;
use ralph_loop_app::config::providers::ConfiguredProvider;
use ralph_loop_app::trust::Ask;
use ralph_loop_app::trust::repo_file;
use ralph_loop_app::{App, Assumptions, Environment, RunRequest};
use ralph_loop_journal::folder::layout::RalphDir;
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_task::config::{ConfigFile, Isolation, join_argv};
use std::path::Path;

/// Reads both files independently, so that one bad file doesn't hide the other.
pub fn files(env: &Environment, top: &Path) -> (Vec<DoctorCheck>, ConfigFile) {
    let mut checks = Vec::new();
    let user = env.user_config().and_then(|path| file(&path, "your config", false, &mut checks));
    let user_isolation = user.as_ref().and_then(|u| u.isolation);
    let repo = file(&RalphDir::of(top).config(), "repo config", true, &mut checks);
    if repo.as_ref().is_some_and(|r| r.isolation == Some(Isolation::None))
        && user_isolation != Some(Isolation::None)
    {
        checks.push(
            DoctorCheck::warn(
                Area::Configuration,
                "isolation",
                "the repo's config says `none`, which is ignored",
            )
            .why("only you can switch the sandbox off: by flag, or in your own config"),
        );
    }
    (checks, user.unwrap_or_default().overlaid(repo.unwrap_or_default()))
}

/// The user's own file is optional and may be a link.
fn file(path: &Path, name: &str, wanted: bool, checks: &mut Vec<DoctorCheck>) -> Option<ConfigFile> {
    let read = if !wanted { repo_file::read_own(path) } else { repo_file::read(path) };
    let bytes = match read {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            if wanted {
                let check = DoctorCheck::warn(
                    Area::Configuration,
                    name,
                    format!("{} doesn't exist", home_path(path)),
                );
                checks
                    .push(check.why("installed agents and defaults are used").fix("`ralph init` writes one"));
            }
            return None;
        }
        Err(e) => {
            let check = DoctorCheck::missing(
                Area::Configuration,
                name,
                format!("cannot read {}: {e}", home_path(path)),
            );
            let readable = || format!("make it readable: chmod u+r '{}'", path.display());
            checks.push(check.fix(repo_file::remedy(&e).map_or_else(readable, str::to_owned)));
            return None;
        }
    };
    let Ok(text) = String::from_utf8(bytes) else {
        checks.push(
            DoctorCheck::missing(Area::Configuration, name, format!("{} is not UTF-8 text", home_path(path)))
                .fix("save it as UTF-8"),
        );
        return None;
    };
    match ConfigFile::parse(&text) {
        Ok(file) => {
            checks.push(DoctorCheck::ok(Area::Configuration, name, home_path(path)));
            Some(file)
        }
        Err(e) => {
            let message = format!("{}:{}:{}: {}", home_path(path), e.line, e.column, e.message);
            checks.push(
                DoctorCheck::missing(Area::Configuration, name, message)
                    .why("a run does not start with a file that it cannot read")
                    .fix(e.hint),
            );
            None
        }
    }
}

/// The checks and the task of a run.
pub fn checks(
    env: &Environment,
    top: &Path,
    file: ConfigFile,
    assumptions: &Assumptions,
) -> Vec<DoctorCheck> {
    let mut checks = Vec::new();
    let settings = file.resolve();
    let setup = !settings.setup_commands.is_empty();
    // File checks start no program.
    for verifier in settings.verifiers.iter().filter(|verifier| !verifier.command_argv.is_empty()) {
        let found = assumptions.checks.first().filter(|found| found.argv == verifier.command_argv);
        let (name, fix, ok) = match found {
            Some(found) => (
                "verifier".to_owned(),
                "install it; or name another command: `ralph run --verify 'COMMAND'`, or `verifiers` in `.ralph/config.json`",
                format!("{} (found, from {})", found.command_line(), found.source),
            ),
            None => (
                format!("verifier {}", verifier.name),
                "install it, or fix the command in the task or in `command_argv` of `.ralph/config.json`",
                verifier.command_line(),
            ),
        };
        checks.push(startable(env, top, name, &verifier.command_argv, setup, ok, fix));
    }
    for name in
        settings.required_verifiers.iter().filter(|n| !settings.verifiers.iter().any(|v| v.name == **n))
    {
        checks.push(
            DoctorCheck::missing(
                Area::Configuration,
                "required_verifiers",
                format!("names the unknown verifier `{name}`"),
            )
            .fix("define it under `verifiers`, or take it out of `required_verifiers`"),
        );
    }
    if settings.required_verifiers.is_empty() {
        checks.push(
            DoctorCheck::missing(Area::Configuration, "verifier", "nothing checks the result")
                .why("a run is done when a check proves it, never by the agent's word")
                .fix("name the command that judges the work: `ralph run --verify 'COMMAND'`, or `verifiers` in `.ralph/config.json`"),
        );
    }
    if let Err(error) = ConfiguredProvider::find(env, settings.sandbox.provider()) {
        let name = format!("sandbox of {}", settings.sandbox.provider().as_str());
        let fix = error.next().to_owned();
        checks.push(
            DoctorCheck::missing(Area::Configuration, name, error.message)
                .why("a run does not start without the sandbox that it is to work in")
                .fix(fix),
        );
    }
    checks
}

/// Whether a check's command can start here.
fn startable(
    env: &Environment,
    top: &Path,
    name: String,
    argv: &[String],
    setup: bool,
    ok: String,
    fix: &str,
) -> DoctorCheck {
    match cannot_start(env, top, argv, setup) {
        None => DoctorCheck::ok(Area::Configuration, name, ok),
        Some(problem) => {
            let whole = match argv {
                [_] => String::new(),
                argv => format!(" (`{}`)", one_line(&join_argv(argv), 80)),
            };
            let message = format!("{}{whole}", problem.words());
            DoctorCheck::missing(Area::Configuration, name, message)
                .why("a check that cannot run proves nothing")
                .fix(fix)
        }
    }
}

/// Requests that only the user can allow: pending and allowed. Problems in the files are reported above.
pub fn trust(app: &App, folder: &Path) -> Vec<DoctorCheck> {
    let Ok(asked) = app.asked(&RunRequest::in_folder(folder)) else { return Vec::new() };
    let difference = match asked.difference() {
        Ok(difference) => difference,
        Err(error) => {
            let fix = error.next().to_owned();
            return vec![DoctorCheck::missing(Area::Configuration, "trust", error.message).fix(fix)];
        }
    };
    let waits = |ask: &Ask| {
        DoctorCheck::warn(Area::Configuration, "trust", format!("waits for you: {}", ask.shown()))
            .why("this repository asks for it, and only you can allow it; a run does not start before")
            .fix("`ralph trust` shows and allows it; or say it yourself, in your own config or by flag")
    };
    let allowed =
        |ask: &Ask| DoctorCheck::ok(Area::Configuration, "trust", format!("you allowed {}", ask.shown()));
    difference.new.iter().map(waits).chain(difference.known.iter().map(allowed)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::setup::doctor::Status;

    #[test]
    fn a_bad_file_is_named_with_its_line() {
        let top = tempfile::tempdir().unwrap();
        let dir = top.path().join(".ralph");
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(dir.join("config.json"), "{\n  \"verifers\": []\n}").unwrap();
        let mut checks = Vec::new();
        assert!(file(&dir.join("config.json"), "repo config", true, &mut checks).is_none());
        assert_eq!(checks[0].status, Status::Missing);
        assert!(checks[0].message.contains("config.json:2:"), "{}", checks[0].message);
        assert_eq!(checks[0].fix.as_deref(), Some("did you mean `verifiers`?"));
    }

    #[test]
    fn every_missing_thing_is_named_not_only_the_first() {
        let top = tempfile::tempdir().unwrap();
        let text =
            r#"{"verifiers":[{"name":"a","command_argv":["/nonexistent/a"]}],"required_verifiers":["b"]}"#;
        let found = checks(
            &Environment::new(Default::default(), "/"),
            top.path(),
            ConfigFile::parse(text).unwrap(),
            &Assumptions::default(),
        );
        let missing: Vec<&str> =
            found.iter().filter(|c| c.status == Status::Missing).map(|c| c.name.as_str()).collect();
        assert_eq!(missing, ["verifier a", "required_verifiers"]);
    }
}
