//! Describes the final check and the handover to the code host.

use super::{Moment, Tone};
use crate::display::text::one_line;
use crate::event::{ChecksState, EventBody, PrOccasion, ProofApproved, ReviewOutcome};
use crate::proof::level::{ProofLevel, who};

pub(super) fn words(body: &EventBody, moment: &Moment<'_>) -> Option<(Tone, String)> {
    let said = match body {
        EventBody::ProofStarted { commit, clean } => {
            let place = if *clean { "in a clean checkout" } else { "in place" };
            (Tone::Plain, format!("final check of {} {place}", commit.short()))
        }
        EventBody::ProofFinished { passed: true, commit, level, level_reason, difference, .. } => {
            let shown = difference.first().or(level_reason.as_ref());
            let shown = shown.map_or_else(String::new, |line| format!(" · {line}"));
            let tone = if level.is_some_and(ProofLevel::is_proven) { Tone::Good } else { Tone::Attention };
            (
                tone,
                format!(
                    "{}: {}{shown}",
                    ProofLevel::headline(*level, None, level_reason.as_deref()),
                    commit.short()
                ),
            )
        }
        EventBody::ProofFinished { question: Some(_), .. } => {
            (Tone::Attention, "the checks pass; the result needs your approval".to_owned())
        }
        EventBody::ProofApproved(ProofApproved { commit, by, .. }) => {
            (Tone::Good, format!("{} accepted the result at {}", who(by), commit.short()))
        }
        EventBody::ProofFinished { failed, .. } => (Tone::Bad, format!("not proven: {}", failed.join("; "))),
        EventBody::ProofVoided { reason } => {
            (Tone::Attention, format!("the final check is made again: {reason}"))
        }
        EventBody::Pushed(news) => match &news.commit {
            Some(commit) => (Tone::Muted, format!("pushed {} to {}", commit.short(), news.branch)),
            None => (Tone::Muted, "pushed the state of the run".into()),
        },
        EventBody::PrWritten(news) => {
            let text = match (news.why, news.draft) {
                (PrOccasion::Opened, _) => format!("pull request opened as a draft: {}", news.url),
                (PrOccasion::Progress, _) => format!("pull request updated: {}", news.url),
                (PrOccasion::Proven, false) => format!("pull request ready for review: {}", news.url),
                (PrOccasion::Proven, true) => {
                    format!("pull request holds the proof (still a draft): {}", news.url)
                }
                (PrOccasion::Asked, _) => {
                    format!("pull request asks you to decide (a draft): {}", news.url)
                }
                (PrOccasion::Stopped, _) => {
                    format!("pull request reports how far the run came (a draft): {}", news.url)
                }
            };
            (if news.why == PrOccasion::Proven { Tone::Good } else { Tone::Plain }, text)
        }
        EventBody::HandoverFailed(news) => {
            let next = match &news.retry_at {
                Some(at) => format!("; next try at {}", moment.until(*at)),
                None => String::new(),
            };
            (Tone::Attention, format!("handover: {}{next}", one_line(&news.reason, 300)))
        }
        EventBody::ChecksSeen(news) => match news.state {
            ChecksState::None if news.seen > 0 => (
                Tone::Attention,
                "every check of the pull request was skipped: nothing was checked there".into(),
            ),
            ChecksState::None => (Tone::Attention, "the pull request has no checks".into()),
            ChecksState::Pending => return None,
            ChecksState::Passed => (Tone::Good, "the checks of the pull request are green".into()),
            ChecksState::Failed => {
                (Tone::Bad, format!("checks of the pull request failed: {}", news.failing.join(", ")))
            }
        },
        EventBody::ReviewSeen(news) => {
            let by = news.by.as_deref().unwrap_or("a user");
            match news.state {
                ReviewOutcome::Waiting => return None,
                ReviewOutcome::Approved => (Tone::Good, format!("approved by {by}")),
                ReviewOutcome::ChangesRequested => (Tone::Attention, format!("{by} asks for changes")),
                ReviewOutcome::Closed => (Tone::Bad, "the pull request was closed without a merge".into()),
                ReviewOutcome::Merged => (Tone::Good, "the pull request was merged".into()),
            }
        }
        EventBody::OverlapFound(news) if news.prs.is_empty() => {
            (Tone::Muted, "no other pull request touches the same files any more".into())
        }
        EventBody::OverlapFound(news) => {
            let list: Vec<String> =
                news.prs.iter().map(|pr| format!("#{} ({})", pr.number, pr.files.join(", "))).collect();
            (Tone::Attention, format!("other pull requests touch the same files: {}", list.join("; ")))
        }
        EventBody::Moved(news) => (Tone::Attention, format!("continuing here, from {}", news.from)),
        // Nothing was changed, and no branch is checked out.
        EventBody::Published { branch, .. } if branch.is_empty() => {
            (Tone::Good, "the result is what is checked out: nothing was changed".into())
        }
        EventBody::Published { branch, .. } => (Tone::Good, format!("the result is on {branch}")),
        _ => return None,
    };
    Some(said)
}
