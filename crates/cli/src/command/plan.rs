//! `ralph plan`: from a wish, or a PRD that is there, to `ralph/prd.md` and `ralph/tasks.json`: with an agent that asks, or with a form.

mod agent;
mod draft;
mod form;

use crate::confirm::{Left, answer, may_ask};
use crate::error::CommandError;
use crate::output::{Out, Sign};
use crate::task_files::{self, NewTask};
use clap::Args;
use draft::PlanDraft;
use ralph_app::project::project_commands;
use ralph_app::task_source::TaskSource;
use ralph_app::{App, find, lint, repo_file};
use ralph_core::clock::SystemClock;
use ralph_domain::describe::Tone;
use ralph_domain::dialect::{Dialect, TaskTexts};
use ralph_domain::ports::Clock as _;
use ralph_domain::text::one_line;
use serde_json::json;
use std::path::{Path, PathBuf};

const TASKS: &str = "ralph/tasks.json";
const PRD: &str = "ralph/prd.md";

/// Turn a wish into a plan: an agent asks what it needs to know and writes the requirements and the stories; you see them before
/// anything is written. With `--prd` the stories are made from requirements that are there.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ralph plan \"Users can export their invoices as CSV\"\n  ralph plan --prd ralph/prd.md              stories from requirements that are there\n  ralph plan --form                          no agent: asks for the stories one by one\n  ralph plan --agent codex --yes \"…\"        nobody is asked; the agent decides what is open\n\nThe same inside Claude Code: `/ralph:plan` (`ralph plugin install`)."
)]
pub struct PlanArgs {
    /// What is wanted; asked for if left out.
    wish: Option<String>,
    /// Make the stories from these requirements.
    #[arg(long, value_name = "FILE", conflicts_with = "form")]
    prd: Option<PathBuf>,
    /// Ask for everything in a form, without an agent.
    #[arg(long)]
    form: bool,
    /// The agent that plans; the first configured or installed one if left out.
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Its model.
    #[arg(short, long, value_name = "MODEL", value_parser = crate::parse::model)]
    model: Option<String>,
    /// Ask nobody: the agent decides what is open, and the plan is written where the linter accepts it.
    #[arg(short, long)]
    yes: bool,
    /// Replace a plan that is there.
    #[arg(long)]
    force: bool,
}

/// Runs the command.
pub fn run(args: PlanArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let top = find::top(folder);
    let asks = may_ask(out) && !args.yes;
    if !asks && (args.form || !args.yes) {
        return Err(CommandError::usage("a plan is talked over, and nobody can be asked here")
            .hint("run it in a terminal, or let the agent decide what is open: `ralph plan --yes \"what is wanted\"`"));
    }
    refuse_existing(&args, &top)?;
    let prd = args.prd.as_ref().map(|file| read_prd(&folder.join(file))).transpose()?;
    let wish = match (&args.wish, &prd) {
        (Some(wish), _) => Some(wish.trim().to_owned()),
        (None, Some(_)) => None,
        (None, None) if asks => answer("What is wanted? ", out)?,
        (None, None) => None,
    };
    if wish.as_deref().unwrap_or_default().is_empty() && prd.is_none() {
        return Err(CommandError::usage("nothing is wanted")
            .hint("say it: `ralph plan \"what is wanted\"`, or name requirements with `--prd FILE`"));
    }
    let wish = wish.unwrap_or_default();
    let draft = match args.form {
        true => {
            let mut draft = form::fill(&wish, &top, out)?;
            match review(&mut draft, asks, false, app, &top, out)? {
                Verdict::Write => draft,
                Verdict::Change(why) => return Err(refused(&why)),
            }
        }
        false => with_agent(&args, app, &top, &wish, prd, out)?,
    };
    write(&draft, &args, &top, out)
}

impl From<Left> for CommandError {
    fn from(_: Left) -> Self {
        Self::usage("you left the conversation; nothing was written")
    }
}

/// An agent makes the plan, and makes it again until the linter and the person take it.
fn with_agent(
    args: &PlanArgs,
    app: &App,
    top: &Path,
    wish: &str,
    prd: Option<String>,
    out: &Out,
) -> Result<PlanDraft, CommandError> {
    let asks = may_ask(out) && !args.yes;
    let mut planner = agent::Planner::new(args, app, top, wish, prd.clone())?;
    loop {
        let mut draft = planner.talk(out)?;
        if let Some(prd) = &prd {
            draft.prd.clone_from(prd);
        }
        match review(&mut draft, asks, true, app, top, out)? {
            Verdict::Write => return Ok(draft),
            Verdict::Change(words) if planner.may_go_on() => planner.change(&words),
            Verdict::Change(words) => return Err(refused(&words)),
        }
    }
}

fn refused(why: &str) -> CommandError {
    CommandError::usage("the plan would be refused by the linter; nothing was written")
        .cause(why)
        .hint("run `ralph plan` again and say more, or use `--form`")
}

/// What becomes of a draft.
enum Verdict {
    Write,
    /// It must be different, in these words.
    Change(String),
}

/// A plan that is there is work of somebody.
fn refuse_existing(args: &PlanArgs, top: &Path) -> Result<(), CommandError> {
    let Ok(text) = repo_file::read_text(&top.join(TASKS)) else { return Ok(()) };
    let untouched = text.contains("The first small step");
    if args.force || untouched {
        return Ok(());
    }
    Err(CommandError::usage(format!("there is a plan already: `{TASKS}`; nothing was written"))
        .hint("`ralph archive` puts a finished one away; `--force` replaces it"))
}

fn read_prd(path: &Path) -> Result<String, CommandError> {
    let text = repo_file::read_text(path).map_err(|e| repo_file::unreadable(path, &e))?;
    if text.trim().len() < 40 {
        return Err(CommandError::usage(format!(
            "`{}` says too little to make stories from",
            path.display()
        ))
        .hint("write what is wanted there first, or let the agent ask: `ralph plan \"what is wanted\"`"));
    }
    Ok(text)
}

/// Shows the plan, with what the linter says, and asks whether it is to be written. Whoever can change it is told how.
fn review(
    draft: &mut PlanDraft,
    asks: bool,
    changes: bool,
    app: &App,
    top: &Path,
    out: &Out,
) -> Result<Verdict, CommandError> {
    draft.settle();
    let report = lint::lint_task(app.environment(), &source(draft, top)?, &[]);
    if !out.json {
        for line in draft.lines() {
            out.line(line);
        }
        for finding in &report.diagnostics {
            let tone = if finding.is_error() { Tone::Bad } else { Tone::Attention };
            out.line(format!(
                "{} {}: {}",
                out.out(tone, finding.severity.as_str()),
                one_line(&finding.message, 300),
                one_line(&finding.fix, 300)
            ));
        }
    }
    if report.refuses() {
        let first = report.diagnostics.iter().find(|finding| finding.is_error());
        return Ok(Verdict::Change(first.map(|finding| one_line(&finding.message, 300)).unwrap_or_default()));
    }
    if !asks {
        return Ok(Verdict::Write);
    }
    let question = match changes {
        true => "Write this plan? [y/N, or say what should be different] ",
        false => "Write this plan? [y/N] ",
    };
    let said = answer(question, out)?.unwrap_or_default();
    match said.to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(Verdict::Write),
        "" | "n" | "no" => Err(CommandError::usage("nothing was written")
            .hint("run `ralph plan` again and say what should be different")),
        _ if changes => Ok(Verdict::Change(said)),
        _ => Err(CommandError::usage("nothing was written").hint("answer `y` to write the plan")),
    }
}

/// The plan as the linter reads it.
fn source(draft: &PlanDraft, top: &Path) -> Result<TaskSource, CommandError> {
    let files = TaskTexts::new(TASKS, draft.tasks_json()?).with(PRD, draft.prd.clone());
    Ok(TaskSource { folder: top.to_owned(), dialect: Dialect::Plan, files })
}

fn write(draft: &PlanDraft, args: &PlanArgs, top: &Path, out: &Out) -> Result<u8, CommandError> {
    let commands = project_commands(top);
    let task = NewTask {
        title: &draft.tasks.project,
        base_branch: None,
        commands: &commands,
        now: SystemClock::default().now(),
    };
    let mut written = Vec::new();
    for (name, template) in task_files::files(Dialect::Plan, &task)? {
        let text = match name {
            TASKS => draft.tasks_json()?,
            // Requirements that are there already stay where they are.
            PRD if args.prd.as_ref().is_some_and(|file| file.ends_with("prd.md"))
                && top.join(PRD).exists() =>
            {
                continue;
            }
            PRD => draft.prd.clone(),
            // What sessions have learnt, and a prompt of the project's own, outlive a plan.
            other if top.join(other).exists() => continue,
            _ => template,
        };
        repo_file::write(&top.join(name), text.as_bytes())?;
        written.push(name);
    }
    if out.json {
        out.value(&json!({"written": written, "stories": draft.tasks.user_stories.len()}));
        return Ok(0);
    }
    for name in &written {
        out.line(format!("{} wrote {name}", out.out(Tone::Good, out.sign(Sign::Good))));
    }
    out.say("commit it, then `ralph run` works through it");
    Ok(0)
}
