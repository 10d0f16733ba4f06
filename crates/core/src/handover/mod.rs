//! The handover: the engine, never an agent, pushes the branch and the run's state, opens and updates one
//! pull request, and waits for checks and reviews. Effects repeated after a crash are recognized as done.

mod overlap;
pub(crate) mod pr;
mod secrets;
mod state_files;
pub mod text;

use crate::error::DriveError;
use crate::run::Run;
use ralph_loop_domain::handover::next_try;
use ralph_loop_domain::ports::{ForgeError, GitRemote, Lease, Push, PushEnd, WorkspaceError};
use ralph_loop_domain::view;
use ralph_loop_journal::JournalError;
use ralph_loop_protocol::event::{Effect, EventBody, HandoverFailed, PrOccasion, Pushed};
use ralph_loop_protocol::id::CommitId;
use ralph_loop_task::dialect::Publish;
use std::time::Duration;

/// A failed handover: the cause, the remedy, and whether to retry.
#[derive(Debug)]
pub(crate) struct HandoverFailure {
    reason: String,
    hint: Option<String>,
    /// Retry after at least this long.
    again: Option<Duration>,
}

impl HandoverFailure {
    fn person(reason: String, hint: impl Into<String>) -> Self {
        Self { reason, hint: Some(hint.into()), again: None }
    }
}

impl From<ForgeError> for HandoverFailure {
    fn from(error: ForgeError) -> Self {
        let again = match &error {
            ForgeError::RateLimited { wait, .. } => Some(*wait),
            ForgeError::Unavailable { .. } => Some(Duration::ZERO),
            _ => None,
        };
        Self { reason: error.to_string(), hint: error.hint().map(str::to_owned), again }
    }
}

#[derive(Debug)]
pub(crate) enum HandoverError {
    /// Journaled; the run continues.
    Failed(HandoverFailure),
    /// The driver can't continue.
    Drive(DriveError),
}

impl From<HandoverFailure> for HandoverError {
    fn from(failure: HandoverFailure) -> Self {
        Self::Failed(failure)
    }
}

impl From<ForgeError> for HandoverError {
    fn from(error: ForgeError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<DriveError> for HandoverError {
    fn from(error: DriveError) -> Self {
        Self::Drive(error)
    }
}

impl From<JournalError> for HandoverError {
    fn from(error: JournalError) -> Self {
        Self::Drive(error.into())
    }
}

impl From<WorkspaceError> for HandoverError {
    fn from(error: WorkspaceError) -> Self {
        Self::Drive(error.into())
    }
}

pub(crate) type HandoverResult<T> = Result<T, HandoverError>;

/// After an iteration: pushes branch and state, and updates the pull request if it is new or has news.
pub(crate) fn push(run: &mut Run) -> Result<(), DriveError> {
    run.boundary("push.before");
    let tried = push_and_update_pr(run);
    record_attempt(run, tried)?;
    run.boundary("push.after");
    Ok(())
}

fn push_and_update_pr(run: &mut Run) -> HandoverResult<()> {
    push_refs(run, run.state.work.commit.clone())?;
    let state = &run.ledger.state;
    if !state.spec.settings.handover.has_pr() || state.work.commit.is_none() {
        return Ok(());
    }
    match &state.handover.pr {
        _ if state.tests_question().is_some() => pr::write_pr(run, PrOccasion::Asked),
        None => pr::write_pr(run, PrOccasion::Opened),
        // The pushed commit isn't the proven one, so the text must not claim it.
        Some(pr)
            if pr.met != state.work.met.len() || matches!(pr.why, PrOccasion::Proven | PrOccasion::Asked) =>
        {
            pr::write_pr(run, PrOccasion::Progress)
        }
        Some(_) => pr::read_pr(run),
    }
}

/// At the end: publishes the proven commit with its evidence, or a draft that says what is missing.
pub(crate) fn publish(run: &mut Run) -> Result<(), DriveError> {
    run.boundary("publish.before");
    let state = &run.ledger.state;
    let proven = state.result.proof.as_ref().filter(|proof| proof.passed).map(|proof| proof.commit.clone());
    let kind = state.spec.settings.handover.publish;
    let tried = match (kind, &proven) {
        (Publish::None, _) => Ok(()),
        // Everything passes without changes, so there is nothing to hand over.
        (_, Some(_)) if state.work.commit.is_none() => {
            run.notice("nothing was changed, so there is nothing to push")?;
            Ok(())
        }
        (Publish::Push, _) => push_refs(run, proven.clone().or_else(|| run.state.work.commit.clone())),
        (Publish::Pr, Some(commit)) => publish_pr(run, Some(commit.clone()), PrOccasion::Proven),
        (Publish::Pr, None) => publish_pr(run, run.state.work.commit.clone(), PrOccasion::Stopped),
    };
    let compared = match (&tried, &proven) {
        (Ok(()), Some(commit)) if run.state.work.commit.is_some() => compare_heads(run, commit),
        _ => Ok(()),
    };
    if !record_attempt(run, tried.and(compared))? {
        return Ok(());
    }
    if let Some(commit) = proven {
        let own = || view::work_ref(&run.ledger.state);
        let branch = view::branch(&run.ledger.state).or_else(own).unwrap_or_default();
        let pr_url = run.state.handover.pr.as_ref().map(|pr| pr.url.clone());
        run.record(EventBody::Published { branch, commit, pr_url })?;
    }
    run.boundary("publish.after");
    Ok(())
}

/// Fails unless branch, pushed head, pull request and proof name the same commit: what is merged must be
/// what was proven.
fn compare_heads(run: &mut Run, proven: &CommitId) -> HandoverResult<()> {
    let state = &run.ledger.state;
    let other = |what: String, commit: &str| {
        let (here, there) = (proven.short(), commit.get(..12).unwrap_or(commit));
        format!("{what} is at {there}, and what the final check passed is {here}")
    };
    if let (Some(branch), None) = (&state.spec.branch, &state.work.branch_kept)
        && let Some(tip) = run.ports.workspace.branch_tip(branch)?.filter(|tip| tip != proven)
    {
        return Err(HandoverFailure::person(
            other(format!("the branch `{branch}`"), tip.as_str()),
            "find out who moved it; reset it to that commit, then `ralph resume`",
        )
        .into());
    }
    let publish = state.spec.settings.handover.publish;
    if publish != Publish::None
        && let Some(pushed) = state.handover.pushed.as_ref().filter(|pushed| *pushed != proven)
    {
        let reason = other("the pushed branch".to_owned(), pushed.as_str());
        return Err(HandoverFailure { reason, hint: None, again: Some(Duration::ZERO) }.into());
    }
    if let (Publish::Pr, Some(forge), Some(pr)) = (publish, &run.ports.forge, &state.handover.pr) {
        let head = forge.pr(pr.number)?.head_commit;
        // Hosts may take a moment to see a push.
        if !head.is_empty() && head != proven.as_str() {
            let reason = other(format!("the pull request {}", pr.url), &head);
            return Err(HandoverFailure { reason, hint: None, again: Some(Duration::from_secs(2)) }.into());
        }
    }
    Ok(())
}

fn publish_pr(run: &mut Run, commit: Option<CommitId>, why: PrOccasion) -> HandoverResult<()> {
    push_refs(run, commit)?;
    pr::write_pr(run, why)
}

/// Journals an error; returns whether all went well.
pub(crate) fn record_attempt(run: &mut Run, tried: HandoverResult<()>) -> Result<bool, DriveError> {
    let failure = match tried {
        Ok(()) => {
            pr::write_pr_state(run, run.state.iterations.count)?;
            return Ok(true);
        }
        Err(HandoverError::Drive(error)) => return Err(error),
        Err(HandoverError::Failed(failure)) => failure,
    };
    let first = run.state.spec.settings.handover.poll;
    let tries = run.state.handover.tries;
    let retry_at = failure.again.and_then(|least| {
        let wait = next_try(tries, first)?.max(least);
        let wait = jiff::SignedDuration::try_from(wait).ok()?;
        run.clock.now().checked_add(wait).ok()
    });
    let reason = run.redactor.text(&failure.reason).into_owned();
    run.record(EventBody::HandoverFailed(HandoverFailed { reason, hint: failure.hint, retry_at }))?;
    run.flush()?;
    Ok(false)
}

/// Pushes branch and state together.
fn push_refs(run: &mut Run, commit: Option<CommitId>) -> HandoverResult<()> {
    let Some(branch) = run.state.spec.settings.handover.branch.clone() else {
        return Err(DriveError::Wiring("there is no name for the branch on the code host".into()).into());
    };
    let remote = match (&run.ports.forge, &run.ports.push_to) {
        (Some(forge), _) => forge.remote()?,
        (None, Some(remote)) => remote.clone(),
        (None, None) => return Err(DriveError::Wiring("there is no remote to push to".into()).into()),
    };
    let files = state_files::collect(&run.ledger)?;
    let state = &run.ledger.state;
    let run_id = state.spec.run_id.clone();
    let message = format!("ralph: state of run {run_id} after iteration {}", state.iterations.count);
    let saved = run.ports.workspace.publisher().save_state(&files, &message, run.ledger.clock.now())?;
    run.boundary("push.saved");
    let facts = &run.ledger.state.handover;
    let lease = |known: &Option<CommitId>| known.clone().map_or(Lease::Absent, Lease::At);
    let mut pushes = vec![Push {
        commit: saved.clone(),
        name: format!("refs/ralph/{run_id}/state"),
        lease: lease(&facts.state),
    }];
    if let Some(commit) = &commit {
        let name = format!("refs/heads/{branch}");
        pushes.push(Push { commit: commit.clone(), name, lease: lease(&facts.pushed) });
    }
    secrets::refuse_secrets(run, &remote, &pushes)?;
    run.ledger.intend(Effect::Push, saved.as_str())?;
    run.boundary("push.intended");
    run.ledger.check_lease()?;
    push_over_own(run, &remote, pushes)?;
    run.boundary("push.done");
    let iteration = run.state.iterations.count;
    let news = Pushed { iteration, branch, commit, state: saved };
    run.record(EventBody::Pushed(news))?;
    Ok(())
}

/// Pushes; may replace what this run pushed in an earlier life unknown to the journal.
fn push_over_own(run: &mut Run, remote: &GitRemote, mut pushes: Vec<Push>) -> HandoverResult<()> {
    let first = end_of(run.ports.workspace.publisher().push(remote, &pushes)?)?;
    let Some(reason) = first else { return Ok(()) };
    for push in &mut pushes {
        let there = run.ports.workspace.publisher().remote_ref(remote, &push.name)?;
        let known = match &push.lease {
            Lease::At(commit) => Some(commit.clone()),
            _ => None,
        };
        push.lease = match there {
            Some(there) if there == push.commit || known.as_ref() == Some(&there) => Lease::At(there),
            Some(there) if run.ports.workspace.publisher().owns(&there)? => Lease::At(there),
            Some(_) => {
                let name = push.name.trim_start_matches("refs/heads/");
                return Err(HandoverFailure::person(
                    format!("`{name}` on {} has commits that this run doesn't know ({reason})", remote.url),
                    "review them; reset the branch to what ralph pushed, or rename it, then `ralph resume`",
                )
                .into());
            }
            None => Lease::Absent,
        };
    }
    match end_of(run.ports.workspace.publisher().push(remote, &pushes)?)? {
        None => Ok(()),
        Some(reason) => Err(HandoverFailure::person(
            format!("the remote {} does not take the push: {reason}", remote.url),
            "a rule of the host may protect the branch; change it there, then `ralph resume`",
        )
        .into()),
    }
}

/// `None` if everything was pushed, else why the remote differs.
fn end_of(end: PushEnd) -> Result<Option<String>, HandoverFailure> {
    match end {
        PushEnd::Pushed => Ok(None),
        PushEnd::Rejected { reason } => Ok(Some(reason)),
        PushEnd::Denied { reason } => Err(HandoverFailure::person(
            format!("the remote refuses the credentials: {reason}"),
            "give a token that may push (`GITHUB_TOKEN`, or a GitHub App), then `ralph resume`",
        )),
        PushEnd::Unavailable { reason } => Err(HandoverFailure {
            reason: format!("the push failed: {reason}"),
            hint: None,
            again: Some(Duration::ZERO),
        }),
    }
}
