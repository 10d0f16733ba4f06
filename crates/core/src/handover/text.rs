//! Texts for the code host: pull request title and body, issue comment.

use ralph_loop_domain::decide::ending;
use ralph_loop_domain::proof::{Proof, evidence_markdown, plain};
use ralph_loop_domain::state::RunState;
use ralph_loop_domain::text::change_text::ChangeText;
use ralph_loop_protocol::display::text::{count, duration, one_line};
use ralph_loop_protocol::event::PrOccasion;
use ralph_loop_task::dialect::template::{Vars, fill, settled};
use std::time::Duration;

/// Hosts cut longer titles.
const TITLE_MAX: usize = 200;
/// Size limit of the body; GitHub accepts 65,536 characters.
const BODY_MAX: usize = 60_000;

/// Template variables.
fn vars(state: &RunState) -> Vars {
    let files = state.work.touched.len();
    let lines =
        state.iterations.history.iter().fold((0, 0), |sum, it| (sum.0 + it.added, sum.1 + it.removed));
    let handover = &state.spec.settings.handover;
    let task = &state.spec.task;
    let ticket = task.ticket.clone().or_else(|| handover.issue.map(|n| n.to_string()));
    let title = &task.title;
    // Without a ticket, the task's id is used.
    let known_as = task.id.as_deref().unwrap_or(state.spec.run_id.as_str());
    Vars::new()
        .with("task_id", known_as)
        .with("ticket_id", ticket.unwrap_or_else(|| known_as.to_owned()))
        .with("task_summary", title)
        .with("summary", said(state).into_iter().next().unwrap_or_else(|| title.clone()))
        .with("diff_summary", format!("{} changed, +{} −{}", count(files, "file"), lines.0, lines.1))
        .with("iteration", state.iterations.count.to_string())
        .with("n", state.iterations.count.to_string())
        .with("iteration_count", state.iterations.count.to_string())
        .with("max_iterations", state.spec.settings.budgets.max_iterations.to_string())
        .with("cost", cost(state))
        .with("agent", state.agents.last_agent.as_ref().map(ToString::to_string).unwrap_or_default())
        .with("run_id", state.spec.run_id.as_str())
        .with("branch", handover.branch.clone().unwrap_or_default())
}

/// The run's known cost.
fn cost(state: &RunState) -> String {
    state.spending.totals.cost.to_string()
}

/// The title: the template, or the task as one line.
pub fn title(state: &RunState) -> String {
    let template = state.spec.settings.handover.pr.title_template.as_deref();
    let title = template.map_or_else(|| state.spec.task.title.clone(), |t| settled(t, &vars(state)));
    let title = if title.trim().is_empty() { state.spec.task.title.clone() } else { title };
    one_line(&title, TITLE_MAX)
}

/// An iteration's commit message: the template, else the agent's own summary.
pub fn commit_message(state: &RunState, iteration: u32, agent: &str) -> Option<String> {
    let said = state.iterations.current.as_ref().and_then(|current| current.session.as_ref());
    let said = said.and_then(|session| ChangeText::of_words(&session.message));
    let Some(template) = state.spec.settings.handover.commit_template.as_deref() else {
        return said.map(|text| text.message());
    };
    let mut vars = vars(state)
        .with("iteration", iteration.to_string())
        .with("n", iteration.to_string())
        .with("agent", agent);
    if let Some(said) = said {
        vars = vars.with("summary", said.subject);
    }
    Some(fill(template, &vars)).filter(|text| !text.trim().is_empty())
}

/// The agents' summaries, latest first, one line each, without duplicates.
fn said(state: &RunState) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for iteration in state.iterations.history.iter().rev().filter(|it| it.files > 0) {
        if let Some(text) = ChangeText::of_words(&iteration.message)
            && !lines.contains(&text.subject)
        {
            lines.push(text.subject);
        }
    }
    lines
}

/// What was done, for the pull request: one agent's summary, several as a list, else the task.
fn summary(state: &RunState) -> String {
    const SAID_MAX: usize = 10;
    match said(state).as_slice() {
        [] => state.spec.task.title.clone(),
        [_] => {
            let changed = state.iterations.history.iter().rev().filter(|it| it.files > 0);
            let text = changed.into_iter().find_map(|it| ChangeText::of_words(&it.message));
            text.map(|text| text.message()).unwrap_or_default()
        }
        lines => {
            let lines = lines.iter().take(SAID_MAX).map(|line| format!("- {}", plain(line, TITLE_MAX)));
            lines.collect::<Vec<_>>().join("\n")
        }
    }
}

/// The agents' description of the change, and the files it touches.
fn change(state: &RunState) -> String {
    const SAID_MAX: usize = 10;
    const FILES_MAX: usize = 30;
    let mut text = String::new();
    let said = said(state);
    for line in said.iter().take(SAID_MAX) {
        text.push_str(&format!("- {}\n", plain(line, TITLE_MAX)));
    }
    let files: Vec<&String> = state.work.touched.iter().collect();
    if !files.is_empty() {
        let shown: Vec<String> =
            files.iter().take(FILES_MAX).map(|name| format!("`{}`", name.replace('`', "'"))).collect();
        let more = files.len().saturating_sub(shown.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        text.push_str(&format!("\n{}: {}{more}\n", count(files.len(), "file"), shown.join(", ")));
    }
    match text.trim() {
        "" => String::new(),
        text => format!("### The change\n\n{text}\n\n"),
    }
}

/// The body: status, task, criteria, evidence, cost.
pub fn body(state: &RunState, why: PrOccasion, proof: &[u8]) -> String {
    let run = &state.spec.run_id;
    let mut text = format!("{}\n\n", status(state, why));
    match state.spec.settings.handover.pr.body_template.as_deref() {
        Some(template) => {
            let vars = vars(state).with("summary", summary(state));
            text.push_str(&format!("{}\n\n", fill(template, &vars).trim()));
        }
        None => {
            text.push_str(&format!("{}\n\n{}", plain(&state.spec.task.title, TITLE_MAX), change(state)));
        }
    }
    let criteria = &state.spec.task.criteria;
    if !criteria.is_empty() {
        text.push_str("### Criteria\n\n");
        for criterion in criteria {
            let mark = if is_met(state, &criterion.id, why) { "x" } else { " " };
            text.push_str(&format!("- [{mark}] {} {}\n", criterion.id, plain(&criterion.text, 300)));
        }
        text.push('\n');
    }
    match why {
        PrOccasion::Proven => text.push_str(&evidence(proof)),
        _ => {
            text.push_str(&question(state));
            text.push_str(&so_far(state));
        }
    }
    if let Some(issue) = state.spec.settings.handover.issue {
        let word = if why == PrOccasion::Proven { "Resolves" } else { "For" };
        text.push_str(&format!("\n{word} #{issue}\n"));
    }
    let mut end = BODY_MAX.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    format!("{}\n\n<!-- ralph run {run} -->\n", text.trim_end())
}

/// Checks of the pull request itself can pass only once it exists.
fn is_met(state: &RunState, id: &str, why: PrOccasion) -> bool {
    let forge = state.spec.task.criteria.iter().any(|c| c.id == id && c.check.needs_forge());
    state.work.met.contains(id) || (why == PrOccasion::Proven && !forge)
}

/// With a capital letter.
fn capital(words: &str) -> String {
    let mut letters = words.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}.", letters.as_str())
}

fn status(state: &RunState, why: PrOccasion) -> String {
    let iterations = count(state.iterations.count as usize, "iteration");
    match why {
        PrOccasion::Proven => {
            let commit = state.result.proof.as_ref().map(|p| p.commit.short().to_owned()).unwrap_or_default();
            let headline = state.result.proof.as_ref().map(|proof| proof.headline()).unwrap_or_default();
            format!(
                "**{}** Every check passed in a clean checkout of `{commit}`, after {iterations}.",
                capital(&headline)
            )
        }
        PrOccasion::Stopped => {
            let (_, why) = ending(state).unzip();
            let why = why.unwrap_or_else(|| "The run ended.".into());
            format!(
                "**Not finished.** {} This is a draft of the work so far: nothing here is proven.",
                plain(&why, 300)
            )
        }
        PrOccasion::Asked => {
            let who = state.agents.last_agent.as_ref().map_or("the run", |agent| agent.as_str());
            let asked = state.tests_question().map(|question| question.message(who)).unwrap_or_default();
            format!(
                "**Needs your decision.** {}. This is a draft: nothing here is proven yet.",
                plain(&asked, 400)
            )
        }
        PrOccasion::Opened | PrOccasion::Progress => {
            format!("**Work in progress.** {iterations} so far; nothing here is proven yet.")
        }
    }
}

/// The question about changed tests, and how to answer it.
fn question(state: &RunState) -> String {
    const LINES: usize = 60;
    let Some(question) = state.tests_question() else { return String::new() };
    let mut text = "### Changed tests\n\n".to_owned();
    for line in question.details().iter().take(LINES) {
        text.push_str(&format!("- {}\n", plain(line, 300)));
    }
    let run = &state.spec.run_id;
    text.push_str(&format!(
        "\n`ralph approve {run}` and `ralph resume {run}` accept the changed tests: the run ends as `own tests`. \
         `ralph nudge \"…\" --run {run}` and `ralph resume {run}` have the next session keep the original tests.\n\n"
    ));
    text
}

/// Usage and status before there is a proof.
fn so_far(state: &RunState) -> String {
    let mut text = "### So far\n\n".to_owned();
    for result in state.work.checks.values() {
        let how = if result.passed { "passes" } else { result.why.as_deref().unwrap_or("fails") };
        text.push_str(&format!("- `{}` {}\n", result.name.replace('`', "'"), plain(how, 200)));
    }
    let time = duration(Duration::from_millis(state.spending.totals.working_ms));
    let score = state.iterations.history.back().map_or(0.0, |last| last.loop_score);
    text.push_str(&format!(
        "- {}, {time} of work, {} tokens, {}, loop score {score:.1}\n",
        count(state.iterations.count as usize, "iteration"),
        state.spending.totals.tokens,
        state.spending.totals.cost.alone(),
    ));
    text
}

/// The table of the final check.
fn evidence(proof: &[u8]) -> String {
    match Proof::parse(proof) {
        Ok(proof) => evidence_markdown(&proof),
        Err(_) => "The evidence is in `proof.json` of the run.\n".to_owned(),
    }
}

/// The comment on the run's issue, updated as the run progresses.
pub fn issue_comment(state: &RunState, why: PrOccasion, pr_url: &str) -> String {
    let met = state.work.met.len();
    let criteria = state.spec.task.criteria.len();
    let progress =
        if criteria > 0 { format!("\n\n{met} of {criteria} criteria met.") } else { String::new() };
    format!("{}\n\nPull request: {pr_url}{progress}\n\nRun `{}`.", status(state, why), state.spec.run_id)
}
