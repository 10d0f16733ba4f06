//! The command line. Each command's arguments and help are in its own file.

use crate::command;
use crate::output::{Color, Style};
use clap::{ArgAction, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// Run coding agents in a loop until your checks prove the work is done
#[derive(Debug, Parser)]
#[command(
    name = "ralph",
    version,
    propagate_version = true,
    after_help = "Examples:
  ralph                              open the terminal UI
  ralph run \"Fix the failing tests\"
Exit codes: 0 done · 1 not done · 2 usage error · 3 needs you · 4 environment · 130 suspended or canceled"
)]
pub struct Cli {
    /// Work in this folder
    #[arg(short = 'C', short_alias = 'd', long, value_name = "DIR", global = true)]
    pub project_dir: Option<PathBuf>,
    /// Print one JSON value on stdout
    #[arg(long, global = true)]
    pub json: bool,
    /// Print errors only
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Show every step; -vv also logs internals
    #[arg(short, long, global = true, conflicts_with = "quiet", action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Use color
    #[arg(long, value_enum, default_value_t = Color::Auto, global = true, value_name = "WHEN")]
    pub color: Color,
    /// The command
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Command groups in help order: those with a description, and those only named.
const GROUPS: [(&str, &[&str], &[&str]); 6] = [
    ("Start", &["demo", "init", "doctor", "plan", "lint", "run"], &["tui"]),
    ("Watch", &["status", "logs", "attach"], &["show", "list", "cost", "replay", "diagnose"]),
    (
        "Steer",
        &["resume", "nudge", "approve"],
        &[
            "pause",
            "rotate",
            "stop",
            "cancel",
            "note",
            "guardrail",
            "edit",
            "model",
            "skip",
            "cooldown",
            "fork",
        ],
    ),
    ("Take the result", &["diff", "apply"], &["publish", "open", "restore"]),
    (
        "Manage",
        &["trust"],
        &[
            "harness",
            "prove",
            "clean",
            "archive",
            "models",
            "probe",
            "sandbox",
            "notify",
            "schema",
            "bug-report",
            "completions",
            "man",
        ],
    ),
    ("Integrate", &["serve"], &["mcp", "plugin", "worker", "deploy", "index", "audit"]),
];

/// Options of `ralph run` that help only names; the manual page describes them.
const RARE: [&str; 21] = [
    "ralph_dir",
    "ticket",
    "best",
    "jobs",
    "prompt",
    "resume",
    "strict_budget",
    "no_baseline",
    "tests",
    "mode",
    "require_proof",
    "protect",
    "depth",
    "sparse",
    "no_sandbox",
    "sandbox",
    "notify",
    "keep_sandbox",
    "pass_env",
    "share",
    "max_tokens",
];

/// Global options, described only in the help of `ralph` itself.
const GLOBAL: [&str; 7] = ["project_dir", "json", "quiet", "verbose", "color", "help", "version"];

/// The command line with a help that fits on a screen. `Cli::command()` describes every option, for the
/// manual.
pub fn parser() -> clap::Command {
    let mut command = Cli::command();
    command.build();
    let template = template(&command);
    command
        .mut_args(|arg| if arg.get_id() == "help" { arg.action(ArgAction::HelpShort) } else { arg })
        .mut_subcommands(concise)
        .help_template(template)
}

/// The help of `ralph`: commands by group.
fn template(command: &clap::Command) -> String {
    let about = |name: &str| {
        let found = command.find_subcommand(name).and_then(clap::Command::get_about);
        format!("  {name:<10} {}\n", found.map(ToString::to_string).unwrap_or_default())
    };
    let mut text = "{about}\n\n{usage-heading} {usage}\n\n".to_owned();
    for (title, described, named) in GROUPS {
        text.push_str(&format!("{title}:\n"));
        text.extend(described.iter().map(|name| about(name)));
        if !named.is_empty() {
            text.push_str(&format!("  {}\n", named.join(", ")));
        }
    }
    text + "Options: -C DIR (work there), --json, -q (errors only), -v (every step), --color WHEN, -h, -V\n{after-help}"
}

/// Hides options that only the help of `ralph` and the manual describe.
fn concise(command: clap::Command) -> clap::Command {
    let is_run = command.get_name() == "run";
    command
        .mut_args(|arg| {
            let id = arg.get_id().as_str();
            let hide = GLOBAL.contains(&id) || (is_run && RARE.contains(&id)) || arg.is_hide_set();
            let arg = if id == "help" { arg.action(ArgAction::HelpShort) } else { arg };
            arg.hide(hide)
        })
        .mut_subcommands(concise)
}

impl Cli {
    pub fn style(&self) -> Style {
        Style { json: self.json, quiet: self.quiet, verbose: self.verbose > 0, color: self.color }
    }
}

pub fn parse(words: impl Iterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let matches = parser().try_get_matches_from(flags_first(words))?;
    Cli::from_arg_matches(&matches)
}

/// Moves flags before `help`, because the parser accepts only commands after it.
fn flags_first(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let words: Vec<OsString> = words.collect();
    if words.get(1).is_none_or(|word| word != "help") {
        return words;
    }
    let is_flag = |word: &&OsString| word.to_str().is_some_and(|word| word.starts_with('-'));
    let (flags, rest): (Vec<&OsString>, Vec<&OsString>) = words[1..].iter().partition(is_flag);
    words.first().into_iter().chain(flags).chain(rest).cloned().collect()
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a task until its checks pass
    Run(Box<command::start::run::RunArgs>),
    /// Resume a paused, suspended or crashed run
    Resume(command::start::resume::ResumeArgs),
    /// Start a new run from an earlier iteration
    Fork(command::start::fork::ForkArgs),
    /// Rebuild a run's decisions from its journal, without a model
    Replay(command::watch::replay::ReplayArgs),
    /// Pause a run after the current session
    #[command(
        after_help = "Examples:\n  ralph pause              pause the latest run here\n  ralph pause k3f9         pause run k3f9"
    )]
    Pause(command::steer::control::RunOnly),
    /// End the current session and start a fresh one
    #[command(
        after_help = "Examples:\n  ralph rotate              rotate the latest run here\n  ralph rotate k3f9         rotate run k3f9"
    )]
    Rotate(command::steer::control::RunOnly),
    /// End a run after the current session
    #[command(
        after_help = "Examples:\n  ralph stop              stop the latest run here\n  ralph stop k3f9         stop run k3f9"
    )]
    Stop(command::steer::control::RunOnly),
    /// End a run now
    #[command(
        after_help = "Examples:\n  ralph cancel              cancel the latest run here\n  ralph cancel k3f9         cancel run k3f9"
    )]
    Cancel(command::steer::control::RunOnly),
    /// Skip an agent for one turn
    Skip(command::steer::control::SkipArgs),
    /// Put an agent on cooldown, or end its cooldown
    Cooldown(command::steer::control::CooldownArgs),
    /// Choose the model for the next iteration
    Model(command::steer::control::ModelArgs),
    /// Change the task of a run
    Edit(command::steer::control::EditArgs),
    /// Approve what a run is asking for
    #[command(
        after_help = "Examples:\n  ralph approve              approve for the latest run here\n  ralph approve k3f9         approve for run k3f9"
    )]
    Approve(command::steer::control::RunOnly),
    /// Add a fact to all later prompts of this run
    Note(command::steer::control::TextArgs),
    /// Manage this repo's lasting rules
    Guardrail(command::steer::guardrail::GuardrailArgs),
    /// Give the next session a hint
    Nudge(command::steer::control::TextArgs),
    /// Open the terminal UI
    #[command(after_help = "Examples:
  ralph tui              the same as `ralph` without a command in a terminal
  ralph -C ~/project tui")]
    Tui,
    /// Show the state of a run
    Status(command::watch::status::StatusArgs),
    /// Show what happened in a run
    Logs(command::watch::logs::LogsArgs),
    /// Watch an active run in the terminal UI
    Attach(command::watch::attach::AttachArgs),
    /// Show a run or one of its iterations in detail
    Show(command::watch::show::ShowArgs),
    /// Show everything a run changed
    Diff(command::take::diff::DiffArgs),
    /// Apply a run's result to your checkout
    Apply(command::take::apply::ApplyArgs),
    /// Push a run's result, or open a pull request with it
    Publish(command::take::publish::PublishArgs),
    /// Open a run's pull request or files
    Open(command::take::open::OpenArgs),
    /// Delete leftovers of finished runs
    Clean(command::take::clean::CleanArgs),
    /// Show what runs cost
    Cost(command::watch::cost::CostArgs),
    /// List runs
    List(command::watch::list::ListArgs),
    /// Write a configuration or a task for this repo
    Init(command::task::init::InitArgs),
    /// Check a task file
    Lint(command::task::lint::LintArgs),
    /// Show which files decide a check, and why
    Harness(command::task::harness::HarnessArgs),
    /// Prove a commit or pull request that no run made
    Prove(command::task::prove::ProveArgs),
    /// Archive a finished plan
    Archive(command::take::archive::ArchiveArgs),
    /// Print a JSON Schema
    Schema(command::task::schema::SchemaArgs),
    /// Diagnose a stuck run
    Diagnose(command::steer::diagnose::DiagnoseArgs),
    /// Check this machine and repo for problems
    Doctor(command::setup::doctor::DoctorArgs),
    /// Collect everything a bug report needs
    BugReport(command::setup::bug_report::BugReportArgs),
    /// Test the local sandbox, list and remove sandboxes
    Sandbox(command::serving::sandbox::SandboxArgs),
    /// Review and allow what this repo requests
    Trust(command::setup::trust::TrustArgs),
    /// Send each agent a test prompt
    Probe(command::setup::probe::ProbeArgs),
    /// List model profiles, or test one
    Models(command::setup::models::ModelsArgs),
    /// Test your notification channels
    Notify(command::setup::notify::NotifyArgs),
    /// Undo a run's file changes
    Restore(command::take::restore::RestoreArgs),
    /// Watch a scripted run, without an account
    Demo(command::start::demo::DemoArgs),
    /// Start the web dashboard
    Serve(command::serving::serve::ServeArgs),
    /// Drive runs for a fleet
    Worker(command::serving::worker::WorkerArgs),
    /// Rebuild the dashboard index
    Index(command::serving::index::IndexArgs),
    /// Verify the dashboard's audit log
    Audit(command::serving::audit::AuditArgs),
    /// Deploy the dashboard to a cloud sandbox
    Deploy(command::serving::deploy::DeployArgs),
    /// Plan a feature as a list of stories
    Plan(command::task::plan::PlanArgs),
    /// Manage the Claude Code plugin
    Plugin(command::setup::plugin::PluginArgs),
    /// Serve runs to other agents over MCP
    Mcp(command::serving::mcp::McpArgs),
    /// Handle an agent hook event
    #[command(hide = true)]
    Hook(command::serving::hook::HookArgs),
    /// Print a shell completion script
    Completions(command::setup::completions::CompletionsArgs),
    /// Print or install the manual pages
    Man(command::setup::man::ManArgs),
}

#[cfg(test)]
mod tests;
