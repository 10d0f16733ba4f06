//! `ralph guardrail`: a repo's lasting rules.

use crate::error::CommandError;
use crate::output::Out;
use clap::Subcommand;
use ralph_loop_app::App;
use ralph_loop_app::steering::guardrails;
use ralph_loop_protocol::describe::Tone;
use std::path::Path;

#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Agents only add rules; only you remove them.

Examples:
  ralph guardrail add 'Never edit generated files.'
  ralph guardrail list
  ralph guardrail remove 4"
)]
pub struct GuardrailArgs {
    /// What to do.
    #[command(subcommand)]
    pub what: Option<GuardrailCommand>,
    /// A rule to add.
    #[command(flatten)]
    pub added: AddArgs,
}

#[derive(Debug, Subcommand)]
pub enum GuardrailCommand {
    /// Add a rule
    #[command(after_help = "Examples:\n  ralph guardrail add 'Never edit generated files.'")]
    Add(AddArgs),
    /// List the rules with their numbers
    #[command(visible_alias = "ls", after_help = "Examples:\n  ralph guardrail list")]
    List,
    /// Remove rules
    #[command(visible_alias = "rm", after_help = "Examples:\n  ralph guardrail remove 4")]
    Remove(RemoveArgs),
}

#[derive(Debug, clap::Args)]
pub struct AddArgs {
    /// Rule to add
    pub text: Option<String>,
    /// Record the rule in this run's journal
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,
}

#[derive(Debug, clap::Args)]
pub struct RemoveArgs {
    /// Number in `ralph guardrail list`, or unique words
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
        out.say("no guardrails yet; run `ralph guardrail add '…'` to add one");
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
