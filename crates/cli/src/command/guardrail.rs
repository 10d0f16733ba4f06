//! `ralph guardrail`: the lasting rules of a repo.

use crate::error::CommandError;
use crate::output::Out;
use clap::Subcommand;
use ralph_loop_app::{App, guardrails};
use ralph_loop_protocol::describe::Tone;
use std::path::Path;

/// Add, list and remove the lasting rules of this repo, which every session gets.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Agents and runs only ever add rules; you take them out, with a run or without one.

Examples:
  ralph guardrail add 'Never edit generated files.'
  ralph guardrail 'Never edit generated files.'      the same
  ralph guardrail list
  ralph guardrail remove 4                           by its number, or by words of it"
)]
pub struct GuardrailArgs {
    /// What to do.
    #[command(subcommand)]
    pub what: Option<GuardrailCommand>,
    /// A rule to add.
    #[command(flatten)]
    pub added: AddArgs,
}

/// What is done with the rules.
#[derive(Debug, Subcommand)]
pub enum GuardrailCommand {
    /// Add a rule.
    Add(AddArgs),
    /// List the rules with their numbers.
    #[command(visible_alias = "ls")]
    List,
    /// Remove rules, also while a run works.
    #[command(visible_alias = "rm")]
    Remove(RemoveArgs),
}

/// The rule to add.
#[derive(Debug, clap::Args)]
pub struct AddArgs {
    /// The rule, in a sentence.
    pub text: Option<String>,
    /// Let this run add it, so that its journal tells of it; without one, the run that works in this folder.
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,
}

/// The rules to remove.
#[derive(Debug, clap::Args)]
pub struct RemoveArgs {
    /// Numbers of `ralph guardrail list`, or words that only one rule has.
    #[arg(required = true, value_name = "RULE")]
    pub rules: Vec<String>,
}

/// Runs the command; `send` lets a run add the rule.
pub fn run(
    args: GuardrailArgs,
    send: impl FnOnce(String, Option<String>) -> Result<u8, CommandError>,
    app: &App,
    folder: &Path,
    out: &Out,
) -> Result<u8, CommandError> {
    match args.what {
        Some(GuardrailCommand::List) => Ok(list(folder, out)),
        Some(GuardrailCommand::Remove(args)) => remove(&args, app, folder, out),
        Some(GuardrailCommand::Add(args)) => add(args, send, app, folder, out),
        None => add(args.added, send, app, folder, out),
    }
}

fn add(
    args: AddArgs,
    send: impl FnOnce(String, Option<String>) -> Result<u8, CommandError>,
    app: &App,
    folder: &Path,
    out: &Out,
) -> Result<u8, CommandError> {
    let Some(text) = args.text.filter(|text| !text.trim().is_empty()) else {
        return Err(CommandError::usage("the rule is empty")
            .hint("`ralph guardrail add 'Never edit generated files.'`, or `ralph guardrail list`"));
    };
    let driven = || app.open(folder, None).is_ok_and(|open| open.handle.is_driven());
    if args.run.is_some() || driven() {
        return send(text, args.run);
    }
    guardrails::add(app.environment(), folder, &text)?;
    if out.json {
        out.value(&serde_json::json!({ "added": text.trim() }));
    }
    out.say("guardrail: added; every session from now on gets it");
    Ok(0)
}

fn list(folder: &Path, out: &Out) -> u8 {
    let rules = guardrails::list(folder);
    if out.json {
        let rules: Vec<_> = rules
            .iter()
            .enumerate()
            .map(|(at, rule)| serde_json::json!({ "number": at + 1, "title": rule.title, "text": rule.text }))
            .collect();
        out.value(&rules);
        return 0;
    }
    if rules.is_empty() {
        out.say("there are no guardrails here; `ralph guardrail add '…'` adds one");
    }
    for (at, rule) in rules.iter().enumerate() {
        out.line(format!("{:>3}  {}", at + 1, rule.title));
        if rule.instruction() != rule.title {
            out.line(out.out(Tone::Muted, &format!("     {}", rule.instruction())));
        }
    }
    0
}

fn remove(args: &RemoveArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let gone = guardrails::remove(app.environment(), folder, &args.rules)?;
    if out.json {
        let titles: Vec<&str> = gone.iter().map(|rule| rule.title.as_str()).collect();
        out.value(&serde_json::json!({ "removed": titles }));
    }
    for rule in &gone {
        out.say(format!("guardrail: removed: {}", rule.title));
    }
    Ok(0)
}
