//! The demo's small repo: failing tests, and a scripted agent that fails before it succeeds.

use crate::error::CommandError;
use ralph_loop_app::agents::isolation;
use ralph_loop_app::{App, Environment, RunRequest};
use ralph_loop_domain::vars::Vars;
use ralph_loop_git::Git;
use ralph_loop_protocol::id::RunId;
use ralph_loop_server::DemoScenario;
use ralph_loop_task::config::{Isolation, Mode};
use ralph_loop_task::dialect::Publish;
use serde_json::{Value, json};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// Path and text of an example's files.
type Files = &'static [(&'static str, &'static str)];

/// Unfinished functions with failing tests.
pub const BUG: Files = &[
    ("PROMPT.md", include_str!("demo/PROMPT.md")),
    ("README.md", include_str!("demo/README.md")),
    ("text.sh", include_str!("demo/text.sh")),
    ("test.sh", include_str!("demo/test.sh")),
    (".ralph/config.json", include_str!("demo/config.json")),
    (".ralph/agent.json", include_str!("demo/agent.json")),
];

/// A new function with new tests.
pub const FEATURE: Files = &[
    ("PROMPT.md", include_str!("demo/feature/PROMPT.md")),
    ("README.md", include_str!("demo/feature/README.md")),
    ("text.sh", include_str!("demo/feature/text.sh")),
    ("test.sh", include_str!("demo/feature/test.sh")),
    ("tests/lower.sh", include_str!("demo/feature/lower.sh")),
    (".ralph/config.json", include_str!("demo/feature/config.json")),
    (".ralph/agent.json", include_str!("demo/feature/agent.json")),
];

/// A demo ready to start.
#[derive(Debug)]
pub struct DemoRun {
    pub folder: PathBuf,
    pub request: RunRequest,
}

/// A demo's scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Course {
    /// At a watchable pace.
    Slow,
    /// Ends quickly.
    Fast,
    /// The agent gets stuck until `ralph` asks the user.
    Stuck,
    /// The agent hits a rate limit and waits.
    Limited,
}

/// Folder, title, scenario and mode of each server demo.
const DEMOS: &[(&str, &str, Course, Mode)] = &[
    ("text-tools", "Three small text functions", Course::Slow, Mode::Autonomous),
    ("guided", "The same with hints and debug commands", Course::Slow, Mode::Debug),
    ("soon-over", "Text functions, proven at once", Course::Fast, Mode::Autonomous),
    ("stuck", "An agent that repeats itself", Course::Stuck, Mode::Guided),
    ("limited", "An agent that meets its rate limit", Course::Limited, Mode::Autonomous),
];

/// Several demos in their own folders: two at a watchable pace, one quick, one that needs the user, one that
/// waits.
pub fn several(env: &Environment) -> Result<Vec<DemoRun>, CommandError> {
    let top = fresh_folder(env)?;
    DEMOS.iter().map(|(name, title, course, mode)| one(env, top.join(name), title, *course, *mode)).collect()
}

/// Starts a demo from the dashboard.
pub fn start(app: &App, scenario: DemoScenario) -> Result<RunId, CommandError> {
    let env = app.environment();
    let folder = fresh_folder(env)?;
    let demo = match scenario {
        DemoScenario::Bug => one(env, folder, "Three small text functions", Course::Slow, Mode::Autonomous)?,
        DemoScenario::Stuck => one(env, folder, "An agent that repeats itself", Course::Stuck, Mode::Guided)?,
        DemoScenario::Feature => {
            make(FEATURE, &folder, false, env.vars())?;
            App::new(env.clone()).asked(&RunRequest::in_folder(&folder))?.allow_file(".ralph/config.json")?;
            DemoRun { request: request(env, &folder).0, folder }
        }
    };
    on_its_own(app, &demo.folder).spawn(&demo.request)
}

fn one(
    env: &Environment,
    folder: PathBuf,
    title: &str,
    course: Course,
    mode: Mode,
) -> Result<DemoRun, CommandError> {
    write_files(BUG, &folder, |file, text| match file {
        "PROMPT.md" => text.replacen("Three small text functions", title, 1),
        ".ralph/agent.json" => played(text, course),
        _ => text.to_owned(),
    })?;
    commit(BUG, &folder, env.vars())?;
    App::new(env.clone()).asked(&RunRequest::in_folder(&folder))?.allow_file(".ralph/config.json")?;
    let mut request = request(env, &folder).0;
    request.overrides.mode = Some(mode);
    Ok(DemoRun { folder, request })
}

/// A new private temporary folder: another user could change what the demo runs in one of theirs.
pub fn fresh_folder(env: &Environment) -> Result<PathBuf, CommandError> {
    let base = env.vars().temp_dir();
    let name = format!("ralph-demo-{}", std::process::id());
    let mut last = base.join(&name);
    for next in 1..=100 {
        match std::fs::DirBuilder::new().mode(0o700).create(&last) {
            Ok(()) => return Ok(last),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                last = base.join(format!("{name}-{next}"));
            }
            Err(error) => {
                return Err(CommandError::environment(format!("cannot make `{}`: {error}", last.display()))
                    .hint("name a folder with `--dir`, or set TMPDIR"));
            }
        }
    }
    Err(CommandError::environment(format!(
        "`{}` and all like it are there already",
        base.join(name).display()
    ))
    .hint("name a folder with `--dir`, or set TMPDIR"))
}

/// The demo's script for a scenario, with prices.
fn played(script: &str, course: Course) -> String {
    let Ok(mut script) = serde_json::from_str::<Value>(script) else { return script.to_owned() };
    let Some(turns) = script["turns"].as_array_mut() else { return script.to_string() };
    match course {
        Course::Slow | Course::Fast => {}
        Course::Stuck => {
            turns.truncate(1);
            let again = json!({
                "do": [{ "append": { "path": "text.sh", "content": "# slug still prints its text as it is\n" } }],
                "say": "slug should work now.\n\n<promise>COMPLETE</promise>",
            });
            turns.extend(std::iter::repeat_n(again, 8));
        }
        Course::Limited => {
            let limit = json!({ "reset_after_seconds": 1800, "reason": "5-hour limit reached" });
            turns.insert(1, json!({ "say": "", "end": { "rate_limited": limit } }));
        }
    }
    for (number, turn) in (1_u64..).zip(turns) {
        let pause = if course == Course::Slow { 25_000 } else { 0 };
        if let Some(actions) = turn.get_mut("do").and_then(Value::as_array_mut) {
            actions.retain(|action| action["pause_ms"].is_null());
            actions.insert(0, json!({ "pause_ms": pause }));
            turn["cost_usd"] = json!((11 + 7 * (number % 4)) as f64 / 100.0);
            turn["tokens"] = json!({ "input": 18_000 + 4_100 * number, "output": 900 + 130 * number });
        }
    }
    script.to_string()
}

/// A demo's request, and whether its agent is sandboxed.
pub fn request(env: &Environment, dir: &Path) -> (RunRequest, bool) {
    let sandboxed = isolation::resolve(env, Isolation::Auto).is_ok();
    let request = RunRequest {
        isolation: Some(if sandboxed { Isolation::Auto } else { Isolation::None }),
        branch: Some("ralph/demo".into()),
        publish: Some(Publish::Pr),
        ..RunRequest::in_folder(dir)
    };
    (request, sandboxed)
}

/// An environment without the user's configuration, agents, models and notifications.
pub fn on_its_own(app: &App, dir: &Path) -> App {
    let vars = app.environment().vars();
    let setting = |name: &str| {
        let ours =
            name.starts_with("RALPH_") && !["RALPH_ASCII", "RALPH_FAULT", "RALPH_TRACE"].contains(&name);
        ours || ralph_loop_app::variables::VARIABLES.iter().any(|known| known.name == name && known.secret)
    };
    let kept = vars.iter().filter(|(name, _)| !name.to_str().is_some_and(setting));
    let vars: Vars = kept.collect();
    // A missing folder holds no configuration.
    let vars = vars.with([("XDG_CONFIG_HOME", dir.join(".ralph").join("no-user-config"))]);
    App::new(app.environment().with_vars(vars))
}

pub fn make(files: Files, dir: &Path, fast: bool, vars: &Vars) -> Result<(), CommandError> {
    write_files(files, dir, |_, text| {
        if fast { text.replace("\"pause_ms\": 1200", "\"pause_ms\": 0") } else { text.to_owned() }
    })?;
    commit(files, dir, vars)
}

fn write_files(files: Files, dir: &Path, changed: impl Fn(&str, &str) -> String) -> Result<(), CommandError> {
    let failed = |what: &Path, e: std::io::Error| {
        CommandError::environment(format!("cannot write `{}`: {e}", what.display()))
    };
    for (name, text) in files {
        let path = dir.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(|e| failed(parent, e))?;
        }
        std::fs::write(&path, changed(name, text)).map_err(|e| failed(&path, e))?;
    }
    Ok(())
}

fn commit(files: Files, dir: &Path, vars: &Vars) -> Result<(), CommandError> {
    let git = Git::in_folder(vars, dir);
    let identity = ["-c", "user.name=ralph demo", "-c", "user.email=demo@localhost"];
    git.call(["init", "-q", "-b", "main", "."]).run().map_err(ralph_loop_git::Error::from)?;
    let tracked = files.iter().map(|(name, _)| *name).filter(|name| !name.starts_with(".ralph/"));
    git.call(["add", "--"].into_iter().chain(tracked)).run().map_err(ralph_loop_git::Error::from)?;
    git.call(identity.into_iter().chain(["commit", "-q", "-m", "A small example"]))
        .run()
        .map_err(ralph_loop_git::Error::from)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_folder_is_not_used() {
        use std::os::unix::fs::PermissionsExt as _;
        let temp = tempfile::tempdir().unwrap();
        let taken = temp.path().join(format!("ralph-demo-{}", std::process::id()));
        std::fs::create_dir(&taken).unwrap();
        let one = temp.path().join(format!("ralph-demo-{}-1", std::process::id()));
        std::os::unix::fs::symlink(temp.path().join("elsewhere"), &one).unwrap();
        let vars: Vars = [("TMPDIR", temp.path())].into_iter().collect();
        let made = fresh_folder(&Environment::new(vars, temp.path())).unwrap();
        assert!(made != taken && made != one, "{}", made.display());
        assert_eq!(std::fs::metadata(&made).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(!temp.path().join("elsewhere").exists());
    }

    #[test]
    fn every_course_is_a_script_that_can_be_played() {
        let (_, script) = BUG.iter().find(|(name, _)| *name == ".ralph/agent.json").unwrap();
        for (name, _, course, _) in DEMOS {
            let text = played(script, *course);
            let config = ralph_loop_task::config::AgentConfig::command("scripted", &[]);
            assert!(ralph_loop_agents::ScriptedAgent::from_json(config, &text).is_ok(), "{name}: {text}");
            assert_eq!(text.contains("25000"), *course == Course::Slow, "{name}");
        }
    }
}
