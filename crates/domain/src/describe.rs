//! Events in words: one sentence each, for logs, screens and messages. One place, so that every reader tells the same
//! story in the same voice.

use crate::event::{
    ActionFinished, ChecksState, Criticised, Diagnosed, EgressRefused, Event, EventBody, PrOccasion,
    ReviewOutcome, Rung, SandboxFate, SandboxGone, SessionEnd,
};
use crate::ports::StopCause;
use crate::text::{count, duration, one_line};
use std::time::Duration;

/// How an event is to be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Ordinary progress.
    Plain,
    /// Of little interest.
    Muted,
    /// Passing, proven.
    Good,
    /// Wants a look.
    Attention,
    /// Failing.
    Bad,
}

/// An event in one sentence; `None` for those that only the engine needs.
pub fn describe(event: &Event) -> Option<(Tone, String)> {
    let said = match &event.body {
        EventBody::RunCreated { title, .. } => (Tone::Plain, format!("run created: {title}")),
        EventBody::DriverStarted { torn_bytes, .. } if *torn_bytes > 0 => (
            Tone::Attention,
            format!("going on from the journal; {torn_bytes} bytes of a torn last line were set aside"),
        ),
        EventBody::DriverStarted { .. } => return None,
        EventBody::Prepared { baseline, .. } => {
            let branch = baseline.branch.as_deref().unwrap_or("a detached HEAD");
            let dirty = match baseline.dirty_total {
                0 => "clean".to_owned(),
                n => format!("{} with changes of yours, left as they are", count(n, "file")),
            };
            (Tone::Muted, format!("snapshot taken on {branch} at {} ({dirty})", baseline.head.short()))
        }
        EventBody::IterationStarted { iteration, attempt, agent, model, skipped, .. } => {
            let mut text = format!("iteration {iteration}: {agent} works");
            if let Some(model) = model {
                text.push_str(&format!(" with {model}"));
            }
            if *attempt > 1 {
                text.push_str(&format!(" (try {attempt})"));
            }
            if !skipped.is_empty() {
                text.push_str(&format!("; skipped {}", skipped.join("; ")));
            }
            (Tone::Plain, text)
        }
        EventBody::SessionEnded { end, promised, duration_ms, survivors, .. } => {
            let time = duration(Duration::from_millis(*duration_ms));
            let mut text = match end {
                SessionEnd::Completed if *promised => format!("session ended after {time} with the promise"),
                SessionEnd::Completed => format!("session ended after {time}"),
                SessionEnd::Stopped { cause } => {
                    format!("session ended after {time}: {}", cause_words(*cause))
                }
                end => match end.reason() {
                    Some(reason) => {
                        format!("session ended after {time}: {} ({})", end.word(), one_line(reason, 160))
                    }
                    None => format!("session ended after {time}: {}", end.word()),
                },
            };
            if *survivors > 0 {
                text.push_str(&format!(
                    "; {} it had left running ended",
                    count(*survivors as usize, "process")
                ));
            }
            let tone = if matches!(end, SessionEnd::Completed) { Tone::Muted } else { Tone::Attention };
            (tone, text)
        }
        EventBody::ActionStarted(_) => return None,
        EventBody::ActionFinished(ActionFinished { number, ok, result, .. }) => {
            let tone = if *ok { Tone::Muted } else { Tone::Attention };
            (tone, format!("action {number}: {result}"))
        }
        EventBody::EgressRefused(EgressRefused { host, port, reason, times }) => {
            let often = if *times > 1 { format!(" ({times} times)") } else { String::new() };
            (Tone::Attention, format!("the fence refused {host}:{port}{often}: {reason}"))
        }
        EventBody::SandboxReady(made) => {
            (Tone::Muted, format!("the sandbox {} of {} is ready", made.id, made.provider))
        }
        EventBody::SandboxGone(gone) => gone.describe(),
        EventBody::Checkpointed { again: true, .. } => return None,
        EventBody::Checkpointed { files_total, added, removed, dirty_touched, .. } => {
            let mut text = match files_total {
                0 => "nothing changed".to_owned(),
                n => format!("{} changed, +{added} −{removed}", count(*n, "file")),
            };
            if !dirty_touched.is_empty() {
                text.push_str(&format!("; edited on top of your own changes: {}", dirty_touched.join(", ")));
            }
            (if dirty_touched.is_empty() { Tone::Muted } else { Tone::Attention }, text)
        }
        EventBody::HandedBack(handed) => (Tone::Attention, handed.words()?),
        EventBody::CheckFinished { result, .. } => {
            let time = duration(Duration::from_millis(result.duration_ms));
            let tests = result.tests.map_or_else(String::new, |t| {
                if t.failed > 0 {
                    format!(", {} of {} tests pass", t.passed, t.executed())
                } else {
                    format!(", {}", count(t.passed as usize, "test"))
                }
            });
            if result.passed {
                (Tone::Good, format!("{} passed ({time}{tests})", result.name))
            } else {
                let why = result.why.as_deref().unwrap_or("failed");
                (Tone::Bad, format!("{} failed: {why} ({time}{tests})", result.name))
            }
        }
        EventBody::ProtectedChanged { changes, .. } => {
            let list: Vec<String> =
                changes.iter().take(5).map(|c| format!("{} {}", c.path, c.change.as_str())).collect();
            (Tone::Bad, format!("protected paths differ from the start: {}", list.join(", ")))
        }
        EventBody::Claimed { ids, .. } if ids.is_empty() => return None,
        EventBody::Claimed { ids, .. } => (Tone::Muted, format!("claimed: {}", ids.join(", "))),
        EventBody::Ticked { met, .. } if met.is_empty() => (Tone::Muted, "no criterion is met".into()),
        EventBody::Ticked { met, .. } => (Tone::Good, format!("met: {}", met.join(", "))),
        EventBody::IterationEnded { iteration, verdict, signals, .. } => {
            let score = if signals.loop_score > 0.0 {
                let seen: Vec<String> = signals
                    .seen()
                    .map(|(signal, weight, words)| format!("{} {weight:.1}: {words}", signal.name()))
                    .collect();
                let seen = if seen.is_empty() { String::new() } else { format!(" ({})", seen.join("; ")) };
                format!(", loop score {:.1}{seen}", signals.loop_score)
            } else {
                String::new()
            };
            (Tone::Muted, format!("iteration {iteration}: {}{score}", verdict.words()))
        }
        EventBody::IterationVoided { reason, .. } => {
            (Tone::Muted, format!("not counted as an iteration: {reason}"))
        }
        EventBody::CooldownSet { agent, until, reason } => {
            (Tone::Attention, format!("{agent} rests until {} ({reason})", until.strftime("%H:%M:%S UTC")))
        }
        EventBody::CooldownCleared { agent } => (Tone::Plain, format!("{agent} may work again")),
        EventBody::AgentDropped { agent, reason } => {
            (Tone::Bad, format!("{agent} takes no further part: {reason}"))
        }
        EventBody::WaitStarted { reason, .. } => (Tone::Attention, format!("waiting: {reason}")),
        EventBody::WaitEnded { waited_ms } => {
            (Tone::Muted, format!("waited {}", duration(Duration::from_millis(*waited_ms))))
        }
        EventBody::BudgetWarning { message, .. } => (Tone::Attention, format!("budget: {message}")),
        EventBody::Gutter { loop_score, evidence, .. } => {
            (Tone::Attention, format!("circling (loop score {loop_score:.1}): {}", evidence.join("; ")))
        }
        EventBody::Stuck { evidence, .. } => {
            (Tone::Attention, format!("may be stuck: {}", evidence.join("; ")))
        }
        EventBody::Mitigated { rung, benched, substitute, .. } => {
            let text = match (rung, benched, substitute) {
                (Rung::Nudge, ..) => "next: a session that is shown the evidence".to_owned(),
                (Rung::Rotate, ..) => "next: a fresh session that is told what was tried".to_owned(),
                (_, _, Some((agent, model))) => format!("next: {agent} with {model}"),
                (_, Some(agent), _) => format!("next: another agent than {agent}"),
                (Rung::Fallback, ..) => "next: a fallback".to_owned(),
                (Rung::Doctor, ..) => "next: a session that knows what the doctor found".to_owned(),
                (Rung::Pause, ..) => "next: a person must look".to_owned(),
            };
            (Tone::Attention, text)
        }
        EventBody::Diagnosed(Diagnosed { by, summary, .. }) => {
            (Tone::Attention, format!("doctor ({by}): {}", one_line(summary, 300)))
        }
        EventBody::Criticised(Criticised { objections, .. }) if objections.is_empty() => return None,
        EventBody::Criticised(Criticised { by, objections, .. }) => {
            (Tone::Attention, format!("critic ({by}): {}", one_line(objections, 300)))
        }
        EventBody::ControlReceived { letter, .. } => {
            (Tone::Plain, format!("{} from {}", letter.control.name(), letter.from))
        }
        EventBody::ControlRefused { reason, .. } => {
            (Tone::Attention, format!("a control was refused: {reason}"))
        }
        EventBody::SpecChanged { version, .. } => {
            (Tone::Plain, format!("the task has version {version} now"))
        }
        EventBody::ApprovalApplied { .. } => {
            (Tone::Plain, "approved: refs and configuration as they are now".into())
        }
        EventBody::RefsMoved { moves, left_out } => {
            let list: Vec<&str> = moves.iter().take(5).map(|m| m.name.as_str()).collect();
            let more = match moves.len() + left_out - list.len() {
                0 => String::new(),
                n => format!(" and {n} more"),
            };
            (Tone::Attention, format!("refs moved, not by ralph: {}{more}", list.join(", ")))
        }
        EventBody::Tampered { what } => (Tone::Bad, one_line(what, 400)),
        EventBody::Restored { what } => (Tone::Attention, format!("was gone and is back: {what}")),
        EventBody::NeedsHuman { message, .. } => (Tone::Attention, format!("needs you: {message}")),
        EventBody::ProofStarted { commit, clean } => {
            let place = if *clean { "in a clean checkout" } else { "in place" };
            (Tone::Plain, format!("final check of {} {place}", commit.short()))
        }
        EventBody::ProofFinished { passed: true, commit, weakened, .. } => {
            let look = match weakened {
                0 => String::new(),
                n => format!("; {}", crate::weakened::summary_of(*n as usize)),
            };
            (Tone::Good, format!("proven: {}{look}", commit.short()))
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
                (PrOccasion::Stopped, _) => {
                    format!("pull request says how far it came (a draft): {}", news.url)
                }
            };
            (if news.why == PrOccasion::Proven { Tone::Good } else { Tone::Plain }, text)
        }
        EventBody::HandoverFailed(news) => {
            let next = match &news.retry_at {
                Some(at) => format!("; next try at {}", at.strftime("%H:%M:%S UTC")),
                None => String::new(),
            };
            (Tone::Attention, format!("handover: {}{next}", one_line(&news.reason, 300)))
        }
        EventBody::ChecksSeen(news) => match news.state {
            ChecksState::None => (Tone::Attention, "the pull request has no checks".into()),
            ChecksState::Pending => return None,
            ChecksState::Passed => (Tone::Good, "the checks of the pull request are green".into()),
            ChecksState::Failed => {
                (Tone::Bad, format!("checks of the pull request failed: {}", news.failing.join(", ")))
            }
        },
        EventBody::ReviewSeen(news) => {
            let by = news.by.as_deref().unwrap_or("somebody");
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
        EventBody::Moved(news) => (Tone::Attention, format!("going on here, from {}", news.from)),
        EventBody::Published { branch, .. } => (Tone::Good, format!("the result is on {branch}")),
        EventBody::Finished { reason, summary } => {
            let tone = if *reason == crate::outcome::EndReason::Completed { Tone::Good } else { Tone::Bad };
            (tone, summary.clone())
        }
        EventBody::Notified(told) => {
            let (by, occasion) = (&told.by, told.occasion.as_str());
            match &told.why {
                None => (Tone::Muted, format!("told by {by}: {occasion}")),
                Some(why) => (Tone::Attention, format!("nobody was told by {by} of {occasion}: {why}")),
            }
        }
        EventBody::Notice { message } => (Tone::Muted, message.clone()),
        EventBody::Unknown => return None,
    };
    Some(said)
}

fn cause_words(cause: StopCause) -> &'static str {
    match cause {
        StopCause::Cancelled => "cancelled",
        StopCause::Rotated => "a fresh one was asked for",
        StopCause::Skipped => "its agent was skipped",
        StopCause::Hopeless => "waiting for it was hopeless",
        StopCause::Budget => "a budget was used up",
    }
}

impl SandboxGone {
    fn describe(&self) -> (Tone, String) {
        let id = &self.id;
        match self.fate {
            SandboxFate::Destroyed => (Tone::Muted, format!("the sandbox {id} was removed")),
            SandboxFate::Stopped => (Tone::Muted, format!("the sandbox {id} rests until the run goes on")),
            SandboxFate::Kept => (Tone::Muted, format!("the sandbox {id} stays, as asked")),
            SandboxFate::Lost => {
                (Tone::Attention, format!("the sandbox {id} is lost; another one takes its place"))
            }
        }
    }
}
