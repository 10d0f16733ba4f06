//! The small repo of the demo: failing tests, and a scripted agent that errs before it succeeds.

use crate::error::CommandError;
use ralph_app::{App, Environment, RunRequest, isolation};
use ralph_domain::config::{Isolation, Mode};
use ralph_domain::dialect::Publish;
use ralph_domain::vars::Vars;
use ralph_git::Git;
use std::path::{Path, PathBuf};

const FILES: &[(&str, &str)] = &[
    ("PROMPT.md", include_str!("demo/PROMPT.md")),
    ("README.md", include_str!("demo/README.md")),
    ("text.sh", include_str!("demo/text.sh")),
    ("test.sh", include_str!("demo/test.sh")),
    (".ralph/config.json", include_str!("demo/config.json")),
    (".ralph/agent.json", include_str!("demo/agent.json")),
];

/// A demo that only has to be started.
#[derive(Debug)]
pub struct DemoRun {
    /// Its repo.
    pub folder: PathBuf,
    /// What is asked for.
    pub request: RunRequest,
}

/// A few demos to look at, each in a folder of its own: one at the pace of a person who watches, one that is soon over, one that
/// takes hints.
pub fn several(env: &Environment) -> Result<Vec<DemoRun>, CommandError> {
    let top = env.vars().temp_dir().join(format!("ralph-demo-{}", std::process::id()));
    let how = [
        ("greeting", false, Mode::Autonomous),
        ("soon-over", true, Mode::Autonomous),
        ("guided", false, Mode::Debug),
    ];
    let mut demos = Vec::new();
    for (name, fast, mode) in how {
        let folder = top.join(name);
        make(&folder, fast, env.vars())?;
        App::new(env.clone()).asked(&RunRequest::in_folder(&folder))?.allow_file(".ralph/config.json")?;
        let mut request = request(env, &folder).0;
        request.overrides.mode = Some(mode);
        demos.push(DemoRun { folder, request });
    }
    Ok(demos)
}

/// The request of a demo, and whether its agent is sandboxed.
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

/// The same surroundings without anything of the user's that could take part: their own configuration with its agents, the
/// models and the notifications that variables name.
pub fn on_its_own(app: &App, dir: &Path) -> App {
    let vars = app.environment().vars();
    let setting = |name: &str| {
        let ours =
            name.starts_with("RALPH_") && !["RALPH_ASCII", "RALPH_FAULT", "RALPH_TRACE"].contains(&name);
        ours || ralph_app::variables::VARIABLES.iter().any(|known| known.name == name && known.secret)
    };
    let kept = vars.iter().filter(|(name, _)| !name.to_str().is_some_and(setting));
    let vars: Vars = kept.collect();
    // A folder that nobody has made holds no configuration.
    let vars = vars.with([("XDG_CONFIG_HOME", dir.join(".ralph").join("no-user-config"))]);
    App::new(app.environment().with_vars(vars))
}

/// Makes the repo.
pub fn make(dir: &Path, fast: bool, vars: &Vars) -> Result<(), CommandError> {
    let failed = |what: &Path, e: std::io::Error| {
        CommandError::environment(format!("cannot write `{}`: {e}", what.display()))
    };
    for (name, text) in FILES {
        let path = dir.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(|e| failed(parent, e))?;
        }
        let text =
            if fast { text.replace("\"pause_ms\": 1200", "\"pause_ms\": 0") } else { (*text).to_owned() };
        std::fs::write(&path, text).map_err(|e| failed(&path, e))?;
    }
    let git = Git::in_folder(vars, dir);
    let identity = ["-c", "user.name=ralph demo", "-c", "user.email=demo@localhost"];
    git.call(["init", "-q", "-b", "main", "."]).run().map_err(ralph_git::Error::from)?;
    git.call(["add", "--", "PROMPT.md", "README.md", "text.sh", "test.sh"])
        .run()
        .map_err(ralph_git::Error::from)?;
    git.call(identity.into_iter().chain(["commit", "-q", "-m", "A small example with failing tests"]))
        .run()
        .map_err(ralph_git::Error::from)?;
    Ok(())
}
