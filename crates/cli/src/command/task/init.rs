//! `ralph init`: writes a configuration for this repo from what it detects, and the files of a new task.

mod new_task;

use crate::error::CommandError;
use crate::output::{Out, Sign};
use crate::text::table::{columns, wrap};
use crate::text::words::row;
use ralph_loop_agents::presets;
use ralph_loop_app::config::{models, settings};
use ralph_loop_app::start::state_files;
use ralph_loop_app::task::project;
use ralph_loop_app::task::project::{ProjectCommand, test_commands};
use ralph_loop_app::task::task_source;
use ralph_loop_app::task::task_templates;
use ralph_loop_app::task::task_templates::TaskTemplate;
use ralph_loop_app::trust::repo_file;
use ralph_loop_app::{App, Environment, RunRequest};
use ralph_loop_domain::vars::Vars;
use ralph_loop_git::{Repo, RepoError};
use ralph_loop_journal::folder::layout::RalphDir;
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::money::Usd;
use ralph_loop_task::config::{AgentConfig, AgentKind, Completion, ConfigFile, VerifierConfig, join_argv};
use ralph_loop_task::dialect::Dialect;
use serde_json::json;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, clap::Args)]
#[command(group = clap::ArgGroup::new("kind").multiple(false))]
#[command(after_help = "Examples:
  ralph init                      configure the agents and checks found here
  ralph init --task --name 'Keep the order of messages'
  ralph init --template metric    improve a number
  ralph init --profile tools      use a model instead of an agent CLI")]
pub struct InitArgs {
    /// Agents to configure
    #[arg(long, value_name = "NAME", value_enum, default_value_t = Profile::Auto)]
    pub profile: Profile,
    /// Write a task as `ralph_task.md`
    #[arg(long, group = "kind")]
    pub task: bool,
    /// Write a task as `ralph.json`
    #[arg(long, group = "kind")]
    pub json_task: bool,
    /// Write a plan in `ralph/`
    #[arg(long, group = "kind")]
    pub plan: bool,
    /// Write a task as `PROMPT.md`
    #[arg(long, group = "kind")]
    pub prompt: bool,
    /// Write a task from a template
    #[arg(long, group = "kind", value_name = "NAME", value_parser = template_names())]
    pub template: Option<String>,
    /// Title of the task
    #[arg(long, value_name = "NAME", requires = "kind")]
    pub name: Option<String>,
    /// Overwrite existing files
    #[arg(long)]
    pub force: bool,
}

fn template_names() -> clap::builder::PossibleValuesParser {
    use clap::builder::PossibleValue;
    task_templates::ALL
        .iter()
        .map(|one| PossibleValue::new(one.name).help(one.title))
        .collect::<Vec<_>>()
        .into()
}

impl InitArgs {
    fn template(&self) -> Option<&'static TaskTemplate> {
        self.template.as_deref().and_then(task_templates::named)
    }

    fn dialect(&self) -> Option<Dialect> {
        let chosen = [
            (self.task, Dialect::RalphTaskMd),
            (self.json_task, Dialect::RalphJson),
            (self.plan, Dialect::Plan),
            (self.prompt, Dialect::PromptMd),
        ];
        let chosen = chosen.into_iter().find(|(is_chosen, _)| *is_chosen).map(|(_, dialect)| dialect);
        chosen.or_else(|| self.template().map(|template| template.dialect))
    }
}

/// Which agents to write down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Profile {
    /// The installed agents
    Auto,
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// opencode.
    Opencode,
    /// Qwen Code.
    Qwen,
    /// A model that answers with JSON actions; needs no CLI.
    Actions,
    /// A model with managed tools; needs no CLI.
    Tools,
    /// Your own command
    Command,
}

impl Profile {
    fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::Qwen => "qwen",
            Self::Actions => "actions",
            Self::Tools => "tools",
            Self::Command => "command",
        }
    }
}

#[derive(Debug)]
struct ProfileDraft {
    file: ConfigFile,
    tests: Vec<ProjectCommand>,
    imported: Option<PathBuf>,
    /// Agents in the user's own configuration.
    own: Vec<String>,
}

pub fn run(args: InitArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let env = app.environment();
    let (top, repo) = match Repo::discover(env.vars(), folder) {
        Ok(repo) => (repo.top.clone(), Some(repo)),
        // Unlike a run, a configuration may precede the first commit.
        Err(RepoError::NoCommits(top)) => (top, None),
        Err(error) => return Err(error.into()),
    };
    if let Some(dialect) = args.dialect() {
        return new_task::write(env, dialect, &args, &top, repo.as_ref(), out);
    }
    let profile = args.profile;
    let path = RalphDir::of(&top).config();
    if path.is_dir() {
        return Err(CommandError::usage(format!(
            "`{}` is a folder, but a file of that name is needed",
            path.display()
        ))
        .hint("move it away, then try again"));
    }
    if path.symlink_metadata().is_ok() && !args.force {
        return Err(CommandError::usage(format!("`{}` already exists; not changed", path.display()))
            .hint("`ralph init --force` replaces it, `ralph doctor` checks it"));
    }
    let draft = draft(env, profile, &top)?;
    write_config(&draft.file, &path, &top, repo.as_ref())?;
    if draft.imported.is_none() {
        // The user just wrote this file, so its requests are allowed, except those copied from the repo.
        if let Ok(asked) = app.asked(&RunRequest::in_folder(&top)) {
            asked.allow_file(".ralph/config.json")?;
        }
    }
    let next = next_steps(profile, &draft, &top, repo.is_some());
    if out.json {
        out.value(&object(profile, &path, &draft, &next));
    } else {
        print_report(&path, &draft, &next, out);
    }
    Ok(0)
}

/// Writes the configuration and state files, and excludes `.ralph/` from commits.
fn write_config(file: &ConfigFile, path: &Path, top: &Path, repo: Option<&Repo>) -> Result<(), CommandError> {
    let text = serde_json::to_string_pretty(file)
        .map_err(|e| CommandError::environment(format!("cannot write the configuration as JSON: {e}")))?;
    repo_file::write(path, format!("{text}\n").as_bytes())?;
    set_up_state(top, repo)
}

/// Writes missing state files and excludes `.ralph/` from commits.
fn set_up_state(top: &Path, repo: Option<&Repo>) -> Result<(), CommandError> {
    state_files::write_missing(&RalphDir::of(top))?;
    if let Some(repo) = repo.cloned().or_else(|| unborn(top)) {
        repo.exclude_ralph_dir()
            .map_err(|e| CommandError { hint: e.hint(), ..CommandError::environment(e.to_string()) })?;
    }
    Ok(())
}

/// Prepares `info/exclude` in a repo without commits, so that `git add -A` skips `.ralph/`.
fn unborn(top: &Path) -> Option<Repo> {
    let git_dir = top.join(".git");
    git_dir.is_dir().then(|| Repo {
        vars: Vars::default(),
        top: top.to_owned(),
        common_dir: git_dir.clone(),
        git_dir,
        object_format: ralph_loop_git::ObjectFormat::Sha1,
        ref_format: ralph_loop_git::RefFormat::Files,
        head: String::new(),
        branch: None,
        engine_git_dir: None,
    })
}

/// The configuration: an older file, then the profile, then what is detected.
fn draft(env: &Environment, profile: Profile, top: &Path) -> Result<ProfileDraft, CommandError> {
    let (mut file, imported) = match import(top)? {
        Some((path, file)) => (file, Some(path)),
        None => (ConfigFile::default(), None),
    };
    file.version = Some(1);
    let agents = match profile {
        Profile::Auto => settings::detected_agents(env, top),
        Profile::Command => vec![skeleton()],
        Profile::Actions => {
            vec![AgentConfig::model("actions", AgentKind::Actions, &default_profile(env, top)?)]
        }
        Profile::Tools => vec![AgentConfig::model("tools", AgentKind::Tools, &default_profile(env, top)?)],
        known => presets::preset(known.name()).into_iter().collect(),
    };
    // A named profile always applies; detected agents only fill a gap.
    if profile != Profile::Auto || file.agents.as_ref().is_none_or(Vec::is_empty) {
        file.agents = (!agents.is_empty()).then_some(agents);
        file.agent_priority = None;
    }
    // Any command can work; few print a promise.
    if profile == Profile::Command {
        file.completion.get_or_insert(Completion::Checks);
    }
    // Agents the user configured for all repos need no entry.
    let mut own = Vec::new();
    if profile == Profile::Auto && imported.is_none() {
        own.extend(settings::user_agents(env).into_iter().map(|agent| agent.name.to_string()));
        if !own.is_empty() {
            file.agents = None;
        }
    }
    let mut tests = Vec::new();
    if file.verifiers.as_ref().is_none_or(Vec::is_empty) {
        tests = test_commands(top);
        file.verifiers = tests.first().map(|t| vec![verifier(&t.argv)]);
        file.required_verifiers = None;
    }
    if file.setup_commands.as_ref().is_none_or(Vec::is_empty) {
        let found = project::setup_commands(top);
        file.setup_commands = (!found.is_empty()).then_some(found);
    }
    let defaults = ralph_loop_task::budget::Budgets::default();
    file.max_iterations.get_or_insert(defaults.max_iterations);
    file.max_wall_time_minutes.get_or_insert(defaults.max_wall_time.as_secs_f64() / 60.0);
    file.max_cost_usd_estimate.get_or_insert(defaults.max_cost);
    Ok(ProfileDraft { file, tests, imported, own })
}

/// The profile that the user, the repo or the environment made the default.
fn default_profile(env: &Environment, top: &Path) -> Result<String, CommandError> {
    Ok(models::load(&env.with_dotenv(top)?, top)?.models.default_name().to_owned())
}

fn import(top: &Path) -> Result<Option<(PathBuf, ConfigFile)>, CommandError> {
    let path = top.join(".ralf/config.json");
    let text = match repo_file::read_text(&path) {
        Ok(text) => text,
        Err(e) if repo_file::remedy(&e).is_some() => return Err(repo_file::unreadable(&path, &e)),
        Err(_) => return Ok(None),
    };
    match ConfigFile::parse(&text) {
        Ok(file) => Ok(Some((path, file))),
        Err(e) => {
            Err(CommandError::usage(format!("{}:{}:{}: {}", path.display(), e.line, e.column, e.message))
                .cause("`ralph init` imports the older format, but can't read this file")
                .hint(format!("{}; or move it away", e.hint)))
        }
    }
}

fn skeleton() -> AgentConfig {
    AgentConfig::command("my-agent", &["./my-agent.sh"])
}

fn verifier(argv: &[String]) -> VerifierConfig {
    VerifierConfig::command("tests", argv.to_vec())
}

fn agent_names(draft: &ProfileDraft) -> Vec<&str> {
    let written = draft.file.agents.iter().flatten().map(|a| a.name.as_str());
    draft.own.iter().map(String::as_str).chain(written).collect()
}

/// Remaining steps, in order.
fn next_steps(profile: Profile, draft: &ProfileDraft, top: &Path, has_commit: bool) -> Vec<String> {
    let mut steps = Vec::new();
    if !has_commit {
        steps.push("make a first commit: `git add -A && git commit --allow-empty -m start`".to_owned());
    }
    match (profile, agent_names(draft).is_empty()) {
        (_, true) => steps.push(
            "install an agent (`ralph doctor` shows how), or `ralph init --profile command --force`"
                .to_owned(),
        ),
        (Profile::Command, false) => steps.push(
            "put the command of your agent into `command_argv`; it gets the prompt on stdin".to_owned(),
        ),
        _ => {}
    }
    if draft.file.verifiers.is_none() {
        steps.push("say how the result is checked: \"verifiers\": [{\"name\": \"tests\", \"command_argv\": [\"make\", \"test\"]}]".to_owned());
    }
    if task_source::candidates(top).is_empty() {
        steps.push("write the task and its checks to `PROMPT.md`, or run `ralph init --task`".to_owned());
    }
    steps.push("`ralph run` starts the loop".to_owned());
    steps
}

fn print_report(path: &Path, draft: &ProfileDraft, next: &[String], out: &Out) {
    if out.quiet {
        return;
    }
    out.line(format!("{} wrote {}", out.out(Tone::Good, out.sign(Sign::Good)), path.display()));
    if let Some(from) = &draft.imported {
        row(out, "taken from", &from.display().to_string());
    }
    let names = agent_names(draft);
    let whose = if draft.own.is_empty() { "" } else { " (of your own configuration)" };
    row(out, "agents", &if names.is_empty() { "none found".to_owned() } else { names.join(", ") + whose });
    match (draft.tests.as_slice(), &draft.file.verifiers) {
        ([], None) => row(out, "tests", "none found"),
        ([], Some(list)) => row(
            out,
            "checks",
            &list.iter().map(|v| format!("{}: {}", v.name, v.command_line())).collect::<Vec<_>>().join("; "),
        ),
        ([first, others @ ..], _) => {
            row(out, "tests", &format!("{} (from {})", join_argv(&first.argv), first.source));
            for other in others {
                row(out, "also found", &format!("{} (from {})", join_argv(&other.argv), other.source));
            }
        }
    }
    if let Some(setup) = &draft.file.setup_commands {
        let lines: Vec<String> = setup.iter().map(ralph_loop_task::config::CommandLine::display).collect();
        row(out, "setup", &format!("{} (before the final check)", lines.join("; ")));
    }
    let (iterations, minutes) =
        (draft.file.max_iterations.unwrap_or_default(), draft.file.max_wall_time_minutes.unwrap_or_default());
    row(
        out,
        "budgets",
        &format!(
            "{iterations} iterations, {minutes:.0} min of work, {}",
            draft.file.max_cost_usd_estimate.unwrap_or(Usd::ZERO)
        ),
    );
    print_next(next, out);
}

fn print_next(next: &[String], out: &Out) {
    for (n, step) in next.iter().enumerate() {
        for (line, text) in wrap(step, columns() - 6).iter().enumerate() {
            match (n, line) {
                (0, 0) => out.line(format!("{} {text}", out.out(Tone::Plain, "next:"))),
                (_, 0) => out.line(format!("then: {text}")),
                _ => out.line(format!("      {text}")),
            }
        }
    }
}

fn object(profile: Profile, path: &Path, draft: &ProfileDraft, next: &[String]) -> serde_json::Value {
    json!({
        "written": path,
        "profile": profile.name(),
        "imported_from": draft.imported,
        "agents": agent_names(draft),
        "verifiers": draft.file.verifiers.iter().flatten().map(|v| json!({ "name": v.name, "command_argv": v.command_argv })).collect::<Vec<_>>(),
        "also_found": draft.tests.iter().skip(1).map(|t| &t.argv).collect::<Vec<_>>(),
        "next": next,
    })
}

#[cfg(test)]
mod tests;
