//! `ralph plan`: from an idea or an existing PRD to `ralph/prd.md` and `ralph/tasks.json`, with an agent or a
//! form.

mod agent;
mod draft;
mod existing;
mod form;

use crate::confirm::{Left, answer, may_ask};
use crate::error::CommandError;
use crate::output::{Out, Sign};
use crate::task_files::{self, NewTask};
use clap::Args;
use draft::PlanDraft;
use ralph_loop_app::App;
use ralph_loop_app::read::find;
use ralph_loop_app::task::lint;
use ralph_loop_app::task::project::project_commands;
use ralph_loop_app::task::task_source::TaskSource;
use ralph_loop_app::trust::repo_file;
use ralph_loop_core::clock::SystemClock;
use ralph_loop_domain::ports::Clock as _;
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_task::dialect::{Dialect, TaskTexts};
use serde_json::json;
use std::path::{Path, PathBuf};

const TASKS: &str = "ralph/tasks.json";
const PRD: &str = "ralph/prd.md";

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ralph plan \"Users can export their invoices as CSV\"\n  ralph plan                     derive stories from ralph/prd.md\n  ralph plan --prd docs/export.md\n  ralph plan --form              answer a form, without an agent"
)]
pub struct PlanArgs {
    /// Feature to plan
    wish: Option<String>,
    /// Derive the stories from this file
    #[arg(long, value_name = "FILE", conflicts_with = "form")]
    prd: Option<PathBuf>,
    /// Ask in a form, without an agent
    #[arg(long)]
    form: bool,
    /// Agent that plans [default: the first available]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Model for the agent
    #[arg(short, long, value_name = "MODEL", value_parser = crate::parse::model)]
    model: Option<String>,
    /// Let the agent decide open questions
    #[arg(short, long)]
    yes: bool,
    /// Replace the stories of an existing plan
    #[arg(long)]
    force: bool,
}

pub fn run(args: PlanArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let top = find::top(folder);
    let asks = may_ask(out) && !args.yes;
    if !asks && (args.form || !args.yes) {
        return Err(CommandError::usage("`ralph plan` needs a terminal")
            .hint("run it in a terminal, or let the agent decide: `ralph plan --yes \"Add coupons\"`"));
    }
    let commands = project_commands(&top);
    let template =
        NewTask { title: "", base_branch: None, commands: &commands, now: SystemClock::default().now() };
    if !args.force {
        existing::refuse_stories(&top, &template)?;
    }
    let own = existing::requirements(&top, &template)?;
    let named = args.prd.as_ref().map(|file| read_prd(&folder.join(file))).transpose()?;
    if let (Some(own), Some(named)) = (&own, &named)
        && own != named
    {
        return Err(CommandError::usage(format!("`{PRD}` has other requirements; nothing was written"))
            .hint(format!("leave out `--prd` to plan from it, or move it away: `mv {PRD} {PRD}.old`")));
    }
    if own.is_some() {
        out.say(format!("`{PRD}` is unchanged; the stories come from it"));
    }
    let prd = named.or(own);
    let wish = match (&args.wish, &prd) {
        (Some(wish), _) => Some(wish.trim().to_owned()),
        (None, Some(prd)) if says_enough(prd) => None,
        (None, _) if asks => answer("What should it do? ", out)?,
        (None, _) => None,
    };
    if wish.as_deref().unwrap_or_default().is_empty() && !prd.as_deref().is_some_and(says_enough) {
        return Err(CommandError::usage("no feature described")
            .hint("run `ralph plan \"Add coupons to the cart\"`, or pass `--prd FILE`"));
    }
    let wish = wish.unwrap_or_default();
    let draft = match args.form {
        true => {
            let mut draft = form::fill(&wish, prd, &commands, out)?;
            match review(&mut draft, asks, false, app, &top, out)? {
                Verdict::Write => draft,
                Verdict::Change(why) | Verdict::Refused(why) => return Err(refused(&why)),
            }
        }
        false => with_agent(&args, app, &top, &wish, prd, out)?,
    };
    write(&draft, &args, &template, &top, out)
}

impl From<Left> for CommandError {
    fn from(_: Left) -> Self {
        Self::usage("you left the conversation; nothing was written")
    }
}

/// Lets an agent draft the plan until linter and user accept it.
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
            Verdict::Change(words) if planner.may_continue() => planner.change(&words),
            Verdict::Change(words) => return Err(refused(&words)),
            Verdict::Refused(why) => planner.refuse(&why)?,
        }
    }
}

fn refused(why: &str) -> CommandError {
    CommandError::usage("the plan would be refused by the linter; nothing was written")
        .cause(why)
        .hint("run `ralph plan` again and say more, or use `--form`")
}

/// The decision on a draft.
enum Verdict {
    Write,
    /// Requested changes.
    Change(String),
    /// Rejected by the linter, with the reason.
    Refused(String),
}

fn read_prd(path: &Path) -> Result<String, CommandError> {
    let text = repo_file::read_text(path).map_err(|e| repo_file::unreadable(path, &e))?;
    if !says_enough(&text) {
        return Err(CommandError::usage(format!("`{}` is too short to derive stories from", path.display()))
            .hint("describe the feature there, or run `ralph plan \"Add coupons to the cart\"`"));
    }
    Ok(text)
}

/// Whether requirements are sufficient for stories.
fn says_enough(prd: &str) -> bool {
    prd.trim().len() >= 40
}

/// Shows the plan with lint results and asks whether to write it or what to change.
fn review(
    draft: &mut PlanDraft,
    asks: bool,
    changes: bool,
    app: &App,
    top: &Path,
    out: &Out,
) -> Result<Verdict, CommandError> {
    draft.settle();
    let report = lint::lint_task(app.environment(), &source(draft, top)?).report;
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
        return Ok(Verdict::Refused(
            first.map(|finding| one_line(&finding.message, 300)).unwrap_or_default(),
        ));
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

fn write(
    draft: &PlanDraft,
    args: &PlanArgs,
    template: &NewTask<'_>,
    top: &Path,
    out: &Out,
) -> Result<u8, CommandError> {
    // The user may have written a plan during the conversation.
    if !args.force {
        existing::refuse_stories(top, template)?;
    }
    let keeps_prd = existing::requirements(top, template)?.is_some();
    let task = NewTask { title: &draft.tasks.project, ..template.clone() };
    let mut written = Vec::new();
    for (name, template) in task_files::files(Dialect::Plan, &task)? {
        let text = match name {
            TASKS => draft.tasks_json()?,
            PRD if keeps_prd => continue,
            PRD => draft.prd.clone(),
            // Session notes and a custom prompt outlive a plan.
            other if top.join(other).exists() => continue,
            _ => template,
        };
        repo_file::write(&top.join(name), text.as_bytes())?;
        written.push(name);
    }
    if out.json {
        let kept = keeps_prd.then_some(PRD);
        out.value(&json!({"written": written, "kept": kept, "stories": draft.tasks.user_stories.len()}));
        return Ok(0);
    }
    for name in &written {
        out.line(format!("{} wrote {name}", out.out(Tone::Good, out.sign(Sign::Good))));
    }
    out.say("commit it, then `ralph run` works through it");
    Ok(0)
}
