//! `ralph demo`: a whole run on a small example, with a scripted agent that errs before it succeeds. No account, no key,
//! no network.

use crate::drive;
use crate::error::CommandError;
use crate::output::Out;
use ralph_app::{App, RunRequest, isolation};
use ralph_domain::config::Isolation;
use ralph_domain::dialect::Publish;
use ralph_domain::vars::Vars;
use ralph_git::Git;
use std::path::{Path, PathBuf};

const FILES: &[(&str, &str)] = &[
    ("PROMPT.md", include_str!("../demo/PROMPT.md")),
    ("README.md", include_str!("../demo/README.md")),
    ("text.sh", include_str!("../demo/text.sh")),
    ("test.sh", include_str!("../demo/test.sh")),
    (".ralph/config.json", include_str!("../demo/config.json")),
    (".ralph/agent.json", include_str!("../demo/agent.json")),
];

/// Makes a small repo with failing tests and lets a scripted agent work on it. The agent fixes one thing, promises too
/// early, tampers with the tests, and only then does the work: watch what the engine makes of that.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph demo
  ralph demo --dir /tmp/ralph-demo     keep the example in a folder of your choice")]
pub struct DemoArgs {
    /// Where to make the example; a new temporary folder if left out.
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Do not wait between the agent's steps.
    #[arg(long)]
    pub fast: bool,
}

/// Runs the command.
pub fn run(args: DemoArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let dir = match &args.dir {
        Some(dir) => folder.join(dir),
        None => app.environment().vars().temp_dir().join(format!("ralph-demo-{}", std::process::id())),
    };
    if dir.exists() && std::fs::read_dir(&dir).is_ok_and(|mut d| d.next().is_some()) {
        return Err(CommandError::usage(format!("`{}` exists and is not empty", dir.display()))
            .hint("name a new folder with `--dir`"));
    }
    make(&dir, args.fast, app.environment().vars())?;
    out.say(format!("a small repo with failing tests is in {}", dir.display()));
    let app = &on_its_own(app, &dir);
    let isolation = match isolation::resolve(app.environment(), Isolation::Auto) {
        Ok(_) => Isolation::Auto,
        Err(_) => {
            out.say("this machine cannot sandbox agents (`ralph doctor` says why); the demo's own agent does no harm");
            Isolation::None
        }
    };
    app.asked(&RunRequest::in_folder(&dir))?.allow_file(".ralph/config.json")?;
    let request = RunRequest {
        isolation: Some(isolation),
        branch: Some("ralph/demo".into()),
        publish: Some(Publish::Pr),
        ..RunRequest::in_folder(&dir)
    };
    // The demo is there to be watched: its steps show even where stderr is no terminal.
    let mut out = *out;
    out.verbose = !out.quiet;
    Ok(drive::start_or_refuse(&request, app, &out))
}

/// The same surroundings without anything of the user's that could take part: their own configuration with its agents, the
/// models and the notifications that variables name.
fn on_its_own(app: &App, dir: &Path) -> App {
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

fn make(dir: &Path, fast: bool, vars: &Vars) -> Result<(), CommandError> {
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
