//! Publish: pushes, hands over, and reads the code host's checks and the review. Their results go to the next session.

use crate::error::DriveError;
use crate::handover::pr::{self, STATUS};
use crate::handover::{self, HandoverResult};
use crate::run::Run;
use crate::steps::stuck_signals;
use jiff::{SignedDuration, Timestamp};
use ralph_loop_domain::decide::Due;
use ralph_loop_domain::handover::{Gate, GateFacts, SLOW_POLL, needs_review, next_poll};
use ralph_loop_domain::ports::{CiCheck, CiState, Comment, DismissedApproval, PrState, Review, ReviewState};
use ralph_loop_protocol::display::text::{tail, tail_lines};
use ralph_loop_protocol::event::{ChecksSeen, ChecksState, EventBody, PrOccasion, ReviewOutcome, ReviewSeen};

/// Failing checks whose logs are fetched.
const LOGS: usize = 3;
/// Size limit of one log, and of all feedback for the next session.
const LOG_MAX: usize = 8 * 1024;
const FEEDBACK_MAX: usize = 24 * 1024;

pub(crate) fn publish(run: &mut Run, due: Due) -> Result<(), DriveError> {
    match due {
        Due::Push => return handover::push(run),
        Due::HandOver => return handover::publish(run),
        Due::Checks => read_checks(run)?,
        Due::Review => read_review(run)?,
        Due::Update => update_pr(run)?,
    }
    stuck_signals::notice_refused_work(run)
}

pub(super) fn read_checks(run: &mut Run) -> Result<(), DriveError> {
    let tried = poll_checks(run);
    handover::record_attempt(run, tried).map(|_| ())
}

pub(super) fn read_review(run: &mut Run) -> Result<(), DriveError> {
    let tried = poll_review(run);
    handover::record_attempt(run, tried).map(|_| ())
}

fn poll_checks(run: &mut Run) -> HandoverResult<()> {
    let Some(forge) = run.ports.forge.as_deref() else { return Ok(()) };
    let Some(commit) = run.state.result.published.as_ref().map(|p| p.commit.clone()) else {
        return Ok(());
    };
    let mut checks = forge.checks(commit.as_str())?;
    checks.retain(|check| check.name != STATUS);
    let failed: Vec<&CiCheck> = checks.iter().filter(|c| c.state == CiState::Failed).collect();
    let pending = checks.iter().any(|c| c.state == CiState::Pending);
    // Hosts count skipped checks as green. If all were skipped, nothing was checked.
    let none_ran = checks.iter().all(|c| c.state == CiState::Skipped);
    let state = match (none_ran, failed.is_empty(), pending) {
        (true, ..) => ChecksState::None,
        (_, false, _) => ChecksState::Failed,
        (_, true, true) => ChecksState::Pending,
        (_, true, false) => ChecksState::Passed,
    };
    let mut feedback = String::new();
    for check in failed.iter().take(LOGS) {
        let log = forge.check_log(check, LOG_MAX).unwrap_or_else(|error| format!("(no log: {error})"));
        let link = check.url.as_deref().unwrap_or_default();
        feedback.push_str(&format!(
            "== check `{}`: {} {link}\n{}\n",
            check.name,
            check.summary,
            tail_lines(log.trim(), 80)
        ));
    }
    let feedback = run.redactor.text(tail(&feedback, FEEDBACK_MAX)).into_owned();
    let failing: Vec<String> = failed.iter().map(|check| check.name.clone()).collect();
    let again = match state {
        ChecksState::Pending => true,
        ChecksState::None => !is_overdue(run),
        // Hosts register checks one after another, so wait until a second poll finds no more.
        ChecksState::Passed => current_gate(run).and_then(|gate| gate.green) != Some(checks.len()),
        ChecksState::Failed => false,
    };
    let next = again.then(|| next_poll_at(run, Gate::Checks, state == ChecksState::Pending));
    if state == ChecksState::Failed {
        run.error_entry("checks of the pull request failed", &feedback);
    }
    run.record(EventBody::ChecksSeen(ChecksSeen {
        commit,
        state,
        seen: checks.len(),
        failing,
        feedback,
        next,
    }))?;
    Ok(())
}

fn poll_review(run: &mut Run) -> HandoverResult<()> {
    let Some(news) = review_news(run)? else { return Ok(()) };
    take_review(run, news)
}

/// Updates the pull request once everything is there, unless an approval was withdrawn, changes were
/// requested, or it was closed since.
fn update_pr(run: &mut Run) -> Result<(), DriveError> {
    let tried = final_poll(run).and_then(|stands| match stands {
        true => pr::write_pr(run, PrOccasion::Proven),
        false => Ok(()),
    });
    handover::record_attempt(run, tried).map(|_| ())
}

fn final_poll(run: &mut Run) -> HandoverResult<bool> {
    let Some(news) = review_news(run)? else { return Ok(true) };
    let stands = match news.state {
        ReviewOutcome::Approved => true,
        ReviewOutcome::Waiting => !needs_review(&run.ledger.state),
        ReviewOutcome::ChangesRequested | ReviewOutcome::Merged | ReviewOutcome::Closed => false,
    };
    if !stands {
        take_review(run, news)?;
    }
    Ok(stands)
}

fn take_review(run: &mut Run, news: ReviewSeen) -> HandoverResult<()> {
    if news.state == ReviewOutcome::ChangesRequested {
        run.error_entry("the reviewer requested changes", &news.feedback);
    }
    run.record(EventBody::ReviewSeen(news))?;
    Ok(())
}

/// The current review; `None` if there isn't one.
fn review_news(run: &mut Run) -> HandoverResult<Option<ReviewSeen>> {
    let Some(forge) = run.ports.forge.as_deref() else { return Ok(None) };
    let Some(number) = run.state.handover.pr.as_ref().map(|pr| pr.number) else { return Ok(None) };
    let pr = forge.pr(number)?;
    let reviews = forge.reviews(number)?;
    let answered = &run.ledger.state.handover.answered;
    let commit = run.state.result.published.as_ref().map(|p| p.commit.as_str());
    // An approval counts only for the commit that was reviewed.
    let seen = |review: &&Review| review.commit.is_none() || review.commit.as_deref() == commit;
    let asks = reviews.iter().find(|r| r.state == ReviewState::ChangesRequested);
    let approves = reviews.iter().filter(seen).find(|r| r.state == ReviewState::Approved);
    let mut news = ReviewSeen {
        state: ReviewOutcome::Waiting,
        by: None,
        answered: Vec::new(),
        feedback: String::new(),
        next: None,
    };
    // Only if no other review decides: a request for changes says more, and another approval still counts.
    // Approvals of an earlier commit lapse with that commit.
    let open = pr.state == PrState::Open && asks.is_none() && approves.is_none();
    let taken: Vec<DismissedApproval> = match open {
        true => forge.dismissed_approvals(number)?,
        false => Vec::new(),
    };
    let is_news = |taken: &DismissedApproval| is_of(taken, commit) && !answered.contains(&taken.id);
    let taken: Vec<DismissedApproval> = taken.into_iter().filter(is_news).collect();
    match (pr.state, asks, approves) {
        (PrState::Merged, ..) => news.state = ReviewOutcome::Merged,
        (PrState::Closed, ..) => news.state = ReviewOutcome::Closed,
        (PrState::Open, ..) if !taken.is_empty() => {
            news.state = ReviewOutcome::ChangesRequested;
            news.by = taken.first().map(|taken| taken.by.clone().unwrap_or_else(|| taken.author.clone()));
            news.answered = taken.iter().map(|taken| taken.id).collect();
            news.feedback = taken.iter().map(withdrawal).collect();
        }
        (PrState::Open, Some(review), _) if !answered.contains(&review.id) => {
            let comments = forge.review_comments(number)?;
            let fresh: Vec<&Comment> = comments.iter().filter(|c| !answered.contains(&c.id)).collect();
            news.state = ReviewOutcome::ChangesRequested;
            news.by = Some(review.author.clone());
            news.answered = fresh.iter().map(|c| c.id).collect();
            news.answered
                .extend(reviews.iter().filter(|r| r.state == ReviewState::ChangesRequested).map(|r| r.id));
            news.feedback = feedback(&reviews, &fresh);
        }
        (PrState::Open, None, Some(review)) => {
            news.state = ReviewOutcome::Approved;
            news.by = Some(review.author.clone());
        }
        (PrState::Open, ..) => news.next = Some(next_poll_at(run, Gate::Review, true)),
    }
    news.feedback = run.redactor.text(&news.feedback).into_owned();
    Ok(Some(news))
}

fn current_gate(run: &Run) -> Option<GateFacts> {
    run.state.handover.gate.filter(|facts| facts.gate == Gate::Checks)
}

/// Whether the first check should have appeared by now.
fn is_overdue(run: &Run) -> bool {
    let limit = SignedDuration::try_from(run.state.spec.settings.handover.ci_appear);
    let limit = limit.unwrap_or(SignedDuration::MAX);
    current_gate(run).is_some_and(|gate| run.clock.now().duration_since(gate.since) >= limit)
}

fn polls(run: &Run, gate: Gate) -> u32 {
    run.state.handover.gate.filter(|facts| facts.gate == gate).map_or(0, |facts| facts.looks)
}

/// Next poll of the code host. Rare if the update depends on others and the host pushes updates, but
/// never off: pushes can be lost.
fn next_poll_at(run: &Run, gate: Gate, others: bool) -> Timestamp {
    let poll = run.state.spec.settings.handover.poll;
    let wait = match poll {
        None if others && run.cancel.has_push_updates() => SLOW_POLL,
        poll => next_poll(gate, polls(run, gate), poll),
    };
    let now = run.clock.now();
    now.checked_add(SignedDuration::try_from(wait).unwrap_or(SignedDuration::from_mins(5))).unwrap_or(now)
}

/// Whether a withdrawn approval was for this commit.
fn is_of(taken: &DismissedApproval, commit: Option<&str>) -> bool {
    taken.commit.is_none() || taken.commit.as_deref() == commit
}

/// Who withdrew an approval, and why.
fn withdrawal(taken: &DismissedApproval) -> String {
    let who = match taken.by.as_deref().filter(|by| !by.eq_ignore_ascii_case(&taken.author)) {
        Some(by) => format!("{by} took back the approval of {}", taken.author),
        None => format!("{} took the approval back", taken.author),
    };
    match taken.message.trim() {
        "" => format!("{who} without a comment: look for what isn't good enough yet.\n"),
        why => tail(&format!("{who}: {why}\n"), FEEDBACK_MAX).to_owned(),
    }
}

/// Review remarks with their locations.
fn feedback(reviews: &[Review], comments: &[&Comment]) -> String {
    let mut text = String::new();
    for review in reviews.iter().filter(|r| r.state != ReviewState::Approved && !r.body.trim().is_empty()) {
        text.push_str(&format!("{}: {}\n", review.author, review.body.trim()));
    }
    for comment in comments {
        let place = match (&comment.path, comment.line) {
            (Some(path), Some(line)) => format!(" on {path}:{line}"),
            (Some(path), None) => format!(" on {path}"),
            _ => String::new(),
        };
        text.push_str(&format!("{}{place}: {}\n", comment.author, comment.body.trim()));
    }
    tail(&text, FEEDBACK_MAX).to_owned()
}
