//! The run's single pull request: a draft from the first push, kept up to date, ready for review once proven.

use super::{HandoverResult, text};
use crate::error::DriveError;
use crate::handover::overlap;
use crate::run::Run;
use ralph_loop_domain::ports::{
    CiState, Forge, ForgeError, NewPr, NewStatus, PrChange, PrState, Publisher, PullRequest,
};
use ralph_loop_domain::state::RunState;
use ralph_loop_journal::folder::artifacts;
use ralph_loop_protocol::event::{Effect, EventBody, PrOccasion, PrWritten, ReviewOutcome, ReviewSeen};
use ralph_loop_protocol::proof::level::ProofLevel;

/// Commit status set on a proven commit; not counted among the checks a run waits for.
pub(crate) const STATUS: &str = "ralph/proof";

/// Whether the result is unverified and unapproved; the pull request then stays a draft.
fn is_unverified(state: &RunState) -> bool {
    let proof = state.result.proof.as_ref();
    proof.is_some_and(|proof| proof.level == Some(ProofLevel::Unverified) && proof.approved_by.is_none())
}

pub(crate) fn write_pr(run: &mut Run, why: PrOccasion) -> HandoverResult<()> {
    run.boundary("pr.before");
    if run.ports.forge.is_none() {
        return Ok(());
    }
    let head = run.state.spec.settings.handover.branch.clone().unwrap_or_default();
    run.ledger.intend(Effect::PullRequest, head)?;
    run.boundary("pr.intended");
    run.ledger.check_lease()?;
    let Some(forge) = run.ports.forge.as_deref() else { return Ok(()) };
    let state = &run.ledger.state;
    let settings = &state.spec.settings.handover;
    let head = settings.branch.clone().unwrap_or_default();
    let found = match &state.handover.pr {
        Some(pr) => Some(forge.pr(pr.number)?),
        None => forge.find_pr(&head)?.filter(|pr| pr.state == PrState::Open),
    };
    if let Some(pr) = found.as_ref().filter(|pr| pr.state != PrState::Open) {
        return pr_is_over(run, pr);
    }
    let proof = std::fs::read(run.record_dir.proof()).unwrap_or_default();
    let clean = |text: String| run.ledger.redact_for_display(&text);
    let title = clean(text::title(state));
    let body = clean(text::body(state, why, &proof));
    let draft = match why {
        PrOccasion::Proven => settings.pr.draft == Some(true) || is_unverified(state),
        // Don't turn a pull request under review back into a draft.
        PrOccasion::Progress => found.as_ref().is_none_or(|pr| pr.draft),
        PrOccasion::Opened | PrOccasion::Asked | PrOccasion::Stopped => true,
    };
    let pr = match found {
        Some(pr) => {
            let change = PrChange {
                title: (pr.title != title).then_some(title),
                body: (pr.body.trim_end() != body.trim_end()).then_some(body),
                draft: (pr.draft != draft).then_some(draft),
            };
            match change == PrChange::default() {
                true => pr,
                false => forge.update_pr(pr.number, &change)?,
            }
        }
        None => {
            let base = base(forge, state, run.ports.workspace.publisher(), &head)?;
            forge.open_pr(&NewPr { head, base, title, body, draft })?
        }
    };
    run.boundary("pr.written");
    let Some(forge) = run.ports.forge.as_deref() else { return Ok(()) };
    let settings = &run.ledger.state.spec.settings.handover;
    if !settings.pr.labels.is_empty() && run.state.handover.pr.is_none() {
        forge.add_labels(pr.number, &settings.pr.labels)?;
    }
    let mut refused = None;
    if why == PrOccasion::Proven
        && let Some(commit) = run.state.result.proof.as_ref().map(|proof| proof.commit.clone())
    {
        let status = NewStatus {
            state: CiState::Passed,
            context: STATUS.into(),
            description: {
                let proof = run.state.result.proof.as_ref();
                let headline = proof.map(|proof| proof.headline()).unwrap_or_default();
                format!("{headline}, after {} iterations", run.state.iterations.count)
            },
            url: None,
        };
        refused = passable(forge.set_status(commit.as_str(), &status))?;
    }
    if let Some(issue) = settings.issue {
        run.ledger.intend(Effect::Comment, format!("issue {issue}"))?;
        run.boundary("comment.intended");
        run.ledger.check_lease()?;
        let Some(forge) = run.ports.forge.as_deref() else { return Ok(()) };
        let mark = format!("run {}", run.state.spec.run_id);
        let body = run.ledger.redact_for_display(&text::issue_comment(&run.ledger.state, why, &pr.url));
        forge.comment(issue, &mark, &body)?;
        run.boundary("pr.commented");
    }
    if let Some(error) = refused {
        run.notice(format!("the status of the commit could not be set: {error}"))?;
    }
    let met = run.state.work.met.len();
    let news = PrWritten { number: pr.number, url: pr.url, draft: pr.draft, why, met };
    run.record(EventBody::PrWritten(news))?;
    overlap::find_overlap(run)
}

/// Writes an iteration's `pr_state.json`.
pub(crate) fn write_pr_state(run: &Run, iteration: u32) -> Result<(), DriveError> {
    if iteration == 0 {
        return Ok(());
    }
    let facts = &run.ledger.state.handover;
    let state = serde_json::json!({
        "forge": run.ports.forge.as_ref().map(|forge| forge.kind()),
        "pr": &facts.pr,
        "pushed": &facts.pushed,
        "checked": &facts.checked,
        "approved_by": &facts.approved,
        "merged": facts.merged,
        "closed": facts.closed,
    });
    let folder = run.ledger.iteration_dir(iteration)?;
    artifacts::write(&folder.join("pr_state.json"), format!("{state}\n").as_bytes())?;
    Ok(())
}

/// Rereads the pull request, which anyone may close at any time.
pub(crate) fn read_pr(run: &mut Run) -> HandoverResult<()> {
    let (Some(forge), Some(pr)) = (run.ports.forge.as_deref(), &run.ledger.state.handover.pr) else {
        return Ok(());
    };
    let pr = forge.pr(pr.number)?;
    if pr.state == PrState::Open { Ok(()) } else { pr_is_over(run, &pr) }
}

/// Records that it was closed or merged, which is final.
fn pr_is_over(run: &mut Run, pr: &PullRequest) -> HandoverResult<()> {
    let state = if pr.state == PrState::Merged { ReviewOutcome::Merged } else { ReviewOutcome::Closed };
    let news = ReviewSeen { state, by: None, answered: Vec::new(), feedback: String::new(), next: None };
    run.record(EventBody::ReviewSeen(news))?;
    Ok(())
}

/// The base branch: the task's, else the start branch if the host has it, else the host's default.
fn base(
    forge: &dyn Forge,
    state: &RunState,
    publisher: &dyn Publisher,
    head: &str,
) -> HandoverResult<String> {
    if let Some(base) = &state.spec.settings.handover.pr.base {
        return Ok(base.clone());
    }
    if let Some(branch) = state.baseline.as_ref().and_then(|b| b.branch.clone()).filter(|b| b != head) {
        let remote = forge.remote()?;
        if publisher.remote_ref(&remote, &format!("refs/heads/{branch}"))?.is_some() {
            return Ok(branch);
        }
    }
    Ok(forge.default_branch()?)
}

/// Reports a harmless refusal by the host instead of failing.
fn passable(result: Result<(), ForgeError>) -> Result<Option<ForgeError>, DriveError> {
    Ok(result.err())
}
