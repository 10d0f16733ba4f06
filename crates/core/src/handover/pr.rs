//! The run's single pull request: a draft from the first push, kept up to date, ready for review once proven.

use super::{HandoverResult, text};
use crate::driver_parts::Driver;
use crate::error::DriveError;
use ralph_loop_domain::ports::{
    CiState, Forge, ForgeError, NewPr, NewStatus, PrChange, PrState, Publisher, PullRequest,
};
use ralph_loop_domain::state::RunState;
use ralph_loop_protocol::event::{Effect, EventBody, PrOccasion, PrWritten, ReviewOutcome, ReviewSeen};
use ralph_loop_protocol::proof::level::ProofLevel;

/// Commit status set on a proven commit; not counted among the checks a run waits for.
pub(crate) const STATUS: &str = "ralph/proof";

/// Whether the result is unverified and unapproved; the pull request then stays a draft.
fn is_unverified(state: &RunState) -> bool {
    let proof = state.result.proof.as_ref();
    proof.is_some_and(|proof| proof.level == Some(ProofLevel::Unverified) && proof.approved_by.is_none())
}

impl Driver {
    pub(crate) fn write_pr(&mut self, why: PrOccasion) -> HandoverResult<()> {
        self.ctx.boundary("pr.before");
        if self.forge.is_none() {
            return Ok(());
        }
        let head = self.ctx.state.spec.settings.handover.branch.clone().unwrap_or_default();
        self.ctx.intend(Effect::PullRequest, head)?;
        self.ctx.boundary("pr.intended");
        self.ctx.check_lease()?;
        let Some(forge) = self.forge.as_deref() else { return Ok(()) };
        let state = &self.ctx.state;
        let settings = &state.spec.settings.handover;
        let head = settings.branch.clone().unwrap_or_default();
        let found = match &state.handover.pr {
            Some(pr) => Some(forge.pr(pr.number)?),
            None => forge.find_pr(&head)?.filter(|pr| pr.state == PrState::Open),
        };
        if let Some(pr) = found.as_ref().filter(|pr| pr.state != PrState::Open) {
            return self.pr_is_over(pr);
        }
        let proof = std::fs::read(self.ctx.run.proof()).unwrap_or_default();
        let clean = |text: String| self.ctx.redact_for_display(&text);
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
                let base = base(forge, state, self.workspace.publisher(), &head)?;
                forge.open_pr(&NewPr { head, base, title, body, draft })?
            }
        };
        self.ctx.boundary("pr.written");
        let Some(forge) = self.forge.as_deref() else { return Ok(()) };
        let settings = &self.ctx.state.spec.settings.handover;
        if !settings.pr.labels.is_empty() && self.ctx.state.handover.pr.is_none() {
            forge.add_labels(pr.number, &settings.pr.labels)?;
        }
        let mut refused = None;
        if why == PrOccasion::Proven
            && let Some(commit) = self.ctx.state.result.proof.as_ref().map(|proof| proof.commit.clone())
        {
            let status = NewStatus {
                state: CiState::Passed,
                context: STATUS.into(),
                description: {
                    let proof = self.ctx.state.result.proof.as_ref();
                    let headline = proof.map(|proof| proof.headline()).unwrap_or_default();
                    format!("{headline}, after {} iterations", self.ctx.state.iterations.count)
                },
                url: None,
            };
            refused = passable(forge.set_status(commit.as_str(), &status))?;
        }
        if let Some(issue) = settings.issue {
            self.ctx.intend(Effect::Comment, format!("issue {issue}"))?;
            self.ctx.boundary("comment.intended");
            self.ctx.check_lease()?;
            let Some(forge) = self.forge.as_deref() else { return Ok(()) };
            let mark = format!("run {}", self.ctx.state.spec.run_id);
            let body = self.ctx.redact_for_display(&text::issue_comment(&self.ctx.state, why, &pr.url));
            forge.comment(issue, &mark, &body)?;
            self.ctx.boundary("pr.commented");
        }
        if let Some(error) = refused {
            self.ctx.notice(format!("the status of the commit could not be set: {error}"))?;
        }
        let met = self.ctx.state.work.met.len();
        let news = PrWritten { number: pr.number, url: pr.url, draft: pr.draft, why, met };
        self.ctx.record(EventBody::PrWritten(news))?;
        self.find_overlap()
    }

    /// Writes an iteration's `pr_state.json`.
    pub(crate) fn write_pr_state(&self, iteration: u32) -> Result<(), DriveError> {
        if iteration == 0 {
            return Ok(());
        }
        let facts = &self.ctx.state.handover;
        let state = serde_json::json!({
            "forge": self.forge.as_ref().map(|forge| forge.kind()),
            "pr": &facts.pr,
            "pushed": &facts.pushed,
            "checked": &facts.checked,
            "approved_by": &facts.approved,
            "merged": facts.merged,
            "closed": facts.closed,
        });
        let folder = self.ctx.iteration_dir(iteration)?;
        self.ctx.files.write(&folder.join("pr_state.json"), format!("{state}\n").as_bytes())?;
        Ok(())
    }

    /// Rereads the pull request, which anyone may close at any time.
    pub(crate) fn read_pr(&mut self) -> HandoverResult<()> {
        let (Some(forge), Some(pr)) = (self.forge.as_deref(), &self.ctx.state.handover.pr) else {
            return Ok(());
        };
        let pr = forge.pr(pr.number)?;
        if pr.state == PrState::Open { Ok(()) } else { self.pr_is_over(&pr) }
    }

    /// Records that it was closed or merged, which is final.
    fn pr_is_over(&mut self, pr: &PullRequest) -> HandoverResult<()> {
        let state = if pr.state == PrState::Merged { ReviewOutcome::Merged } else { ReviewOutcome::Closed };
        let news = ReviewSeen { state, by: None, answered: Vec::new(), feedback: String::new(), next: None };
        self.ctx.record(EventBody::ReviewSeen(news))?;
        Ok(())
    }
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
