//! The command line as a whole. Each command's own arguments, and its help, stand in its file.

use crate::command;
use crate::output::{Color, Style};
use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// Gives a coding task to fresh agent sessions until the result is proven.
#[derive(Debug, Parser)]
#[command(
    name = "ralph",
    version,
    propagate_version = true,
    after_help = "Without a command, `ralph` opens its terminal UI in a repo on a terminal; elsewhere it says where things stand and what the next step is.\n\nExit codes: 0 proven or done · 1 ended without success · 2 wrong use · 3 needs a person · 4 the environment cannot do it · 130 suspended or cancelled"
)]
pub struct Cli {
    /// Work in this folder instead of the current one.
    #[arg(
        short = 'C',
        short_alias = 'd',
        long,
        value_name = "DIR",
        global = true,
        help_heading = "Everywhere"
    )]
    pub project_dir: Option<PathBuf>,
    /// Print one JSON value on stdout instead of text.
    #[arg(long, global = true, help_heading = "Everywhere")]
    pub json: bool,
    /// Say only what went wrong.
    #[arg(short, long, global = true, help_heading = "Everywhere")]
    pub quiet: bool,
    /// Show every step, also when stderr is not a terminal; twice (`-vv`) also what the engine does inside.
    #[arg(short, long, global = true, conflicts_with = "quiet", action = clap::ArgAction::Count, help_heading = "Everywhere")]
    pub verbose: u8,
    /// When to use colour. NO_COLOR is respected.
    #[arg(long, value_enum, default_value_t = Color::Auto, global = true, value_name = "WHEN", help_heading = "Everywhere")]
    pub color: Color,
    /// What to do.
    #[command(subcommand)]
    pub command: Option<Command>,
}

impl Cli {
    /// How the output is wanted.
    pub fn style(&self) -> Style {
        Style { json: self.json, quiet: self.quiet, verbose: self.verbose > 0, color: self.color }
    }
}

/// The command line with the flags of `help` before it: the parser takes only commands behind that word.
pub fn flags_first(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
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
    /// Run the loop until the result is proven.
    Run(Box<command::run::RunArgs>),
    /// Go on with a run: unpause a living one, continue a dead one.
    Resume(command::resume::ResumeArgs),
    /// Begin a new run with the files of another one's iteration.
    Fork(command::fork::ForkArgs),
    /// Run the decisions and prompts of a run again, without any model.
    Replay(command::replay::ReplayArgs),
    /// Wait after the current session, until `ralph resume`.
    #[command(
        after_help = "Examples:\n  ralph pause              the latest run of this folder\n  ralph pause k3f9         the run whose id ends in k3f9"
    )]
    Pause(command::control::RunOnly),
    /// End the current session and start a fresh one.
    #[command(
        after_help = "Examples:\n  ralph rotate              the latest run of this folder\n  ralph rotate k3f9         the run whose id ends in k3f9"
    )]
    Rotate(command::control::RunOnly),
    /// End the run after the current session.
    #[command(
        after_help = "Examples:\n  ralph stop              the latest run of this folder\n  ralph stop k3f9         the run whose id ends in k3f9"
    )]
    Stop(command::control::RunOnly),
    /// End the run now.
    #[command(
        after_help = "Examples:\n  ralph cancel              the latest run of this folder\n  ralph cancel k3f9         the run whose id ends in k3f9"
    )]
    Cancel(command::control::RunOnly),
    /// Leave an agent out of the next turn.
    Skip(command::control::SkipArgs),
    /// Put an agent into cooldown, or end its cooldown.
    Cooldown(command::control::CooldownArgs),
    /// Choose the model for the next iteration.
    Model(command::control::ModelArgs),
    /// Change the task of a run.
    Edit(command::control::EditArgs),
    /// Accept what a run asks about.
    #[command(
        after_help = "Examples:\n  ralph approve              the latest run of this folder\n  ralph approve k3f9         the run whose id ends in k3f9"
    )]
    Approve(command::control::RunOnly),
    /// Add a fact to every following prompt.
    Note(command::control::TextArgs),
    /// Add, list and remove the lasting rules of this repo.
    Guardrail(command::guardrail::GuardrailArgs),
    /// Give a hint to the next session.
    Nudge(command::control::TextArgs),
    /// Show where a run stands.
    Status(command::status::StatusArgs),
    /// Show what happened, or what an agent printed.
    Logs(command::logs::LogsArgs),
    /// Show a run that goes on by itself, to its end.
    Attach(command::attach::AttachArgs),
    /// Show a run or one of its iterations in detail.
    Show(command::show::ShowArgs),
    /// Show everything that a run has changed, new files included.
    Diff(command::diff::DiffArgs),
    /// Take the result of a run into your own checkout.
    Apply(command::apply::ApplyArgs),
    /// Open the pull request of a run, or its files.
    Open(command::open::OpenArgs),
    /// Remove what runs that are over have left behind.
    Clean(command::clean::CleanArgs),
    /// Show what the runs of this machine have cost.
    Cost(command::cost::CostArgs),
    /// List runs.
    List(command::list::ListArgs),
    /// Write a configuration for this repo, or the files of a new task.
    Init(command::init::InitArgs),
    /// Check a task file.
    Lint(command::lint::LintArgs),
    /// Put a finished plan away and start afresh.
    Archive(command::archive::ArchiveArgs),
    /// Print a JSON Schema of a task, the configuration or the events.
    Schema(command::schema::SchemaArgs),
    /// Let a doctor read a run that gets nowhere.
    Diagnose(command::diagnose::DiagnoseArgs),
    /// Check what this machine and repo have, and what is missing.
    Doctor(command::doctor::DoctorArgs),
    /// Write all that a bug report needs to one text file.
    BugReport(command::bug_report::BugReportArgs),
    /// Test the sandbox of this machine, list and remove sandboxes.
    Sandbox(command::sandbox::SandboxArgs),
    /// Show what this repo asks for that only you can allow, and allow it.
    Trust(command::trust::TrustArgs),
    /// Try each agent with one tiny question.
    Probe(command::probe::ProbeArgs),
    /// List the model profiles, or try one.
    Models(command::models::ModelsArgs),
    /// Send a test message to everyone who is told of runs.
    Notify(command::notify::NotifyArgs),
    /// Bring the files back to what they were before a run.
    Restore(command::restore::RestoreArgs),
    /// Watch a whole run on a small example, without any account.
    Demo(command::demo::DemoArgs),
    /// Show and steer every run of this machine on a page.
    Serve(command::serve::ServeArgs),
    /// Drive runs for a fleet: many machines over one Postgres.
    Worker(command::worker::WorkerArgs),
    /// Make the dashboard's index anew.
    Index(command::index::IndexArgs),
    /// Put the dashboard into a sandbox of a cloud.
    Deploy(command::deploy::DeployArgs),
    /// Turn a wish into a plan: stories that a run can work through.
    Plan(command::plan::PlanArgs),
    /// Install the Claude Code plugin, remove it, or say how it stands.
    Plugin(command::plugin::PluginArgs),
    /// Let another agent start, watch and steer runs, over the Model Context Protocol.
    Mcp(command::mcp::McpArgs),
    /// Answer an event of an agent's session (the plugin calls it).
    Hook(command::hook::HookArgs),
    /// Print a completion script for your shell.
    Completions(command::completions::CompletionsArgs),
    /// Print or install the manual pages.
    Man(command::man::ManArgs),
}

#[cfg(test)]
mod tests;
