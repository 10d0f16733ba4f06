//! Keeps every event small enough for the journal: texts are cut, and cut lists say how many entries are missing.
//! Data that decisions depend on is kept in full, or cut in a way that leads to the same decision.

use super::tests_question::TestsQuestion;
use super::{Ask, Baseline, CheckResult, EventBody, FileChange, RefMove, SessionEnd};
use crate::display::text::head;
use crate::proof::protected::ProtectedChange;

/// Bytes of a name, a path or a sentence in JSON.
const LINE_MAX: usize = 4 * 1024;
const TEXT_MAX: usize = 16 * 1024;
const LIST_BYTES: usize = 60 * 1024;
/// Lines of a check's output, and names of its failing tests; bytes of each.
const CHECK_LINES: usize = 24;
const CHECK_LINE: usize = 400;
/// Commits that a session asks for, and the paths of each.
const COMMIT_PARTS: usize = 8;
const COMMIT_PATHS: usize = 40;
/// Checks of one event whose output is kept.
const REFUSED_MAX: usize = 4;
/// Entries of a list.
const LIST_MAX: usize = 200;

impl EventBody {
    /// The same event within bounds. Every kind lists here what may grow. A user's text and the ids of a task's
    /// criteria are never cut, because decisions depend on them; the code that creates such events checks their size.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        match &mut self {
            Self::RunCreated { title, .. } => line(title),
            Self::Prepared { baseline, checks, .. } => {
                of_start(baseline);
                for results in checks.iter_mut().map(|checks| &mut checks.results) {
                    results.iter_mut().for_each(of_check);
                    // The output of the first few is enough to see what is wrong at the start.
                    for result in results.iter_mut().filter(|r| !r.passed).skip(REFUSED_MAX) {
                        (result.failing, result.last_lines) = (Vec::new(), Vec::new());
                    }
                }
                if let Some(checks) = checks {
                    checks.results.truncate(LIST_MAX);
                    checks.setup_failed.iter_mut().chain(&mut checks.setup_log).for_each(line);
                    checks.setup_lines.truncate(CHECK_LINES);
                    checks.setup_lines.iter_mut().for_each(|line| cut(line, CHECK_LINE));
                }
            }
            Self::IterationStarted { skipped, .. } => names(skipped),
            Self::SessionEnded { .. } => self.bound_session(),
            Self::ActionStarted(action) => [&mut action.action, &mut action.what].into_iter().for_each(line),
            Self::ActionFinished(action) => line(&mut action.result),
            Self::EgressRefused(refused) => {
                [&mut refused.host, &mut refused.reason].into_iter().for_each(line)
            }
            Self::SandboxReady(made) => [&mut made.provider, &mut made.id].into_iter().for_each(line),
            Self::SandboxGone(gone) => line(&mut gone.id),
            Self::Checkpointed { files, dirty_touched, in_submodules, .. } => {
                files.iter_mut().take(LIST_MAX).for_each(|file| line(&mut file.path));
                shorten(files, |file: &FileChange| weight(&file.path) + 120);
                names(dirty_touched);
                names(in_submodules);
            }
            Self::HandedBack(handed) => names(&mut handed.conflicts),
            Self::CheckFinished { result, .. } => of_check(result),
            Self::ProtectedChanged { changes, left_out, .. } => {
                changes.iter_mut().take(LIST_MAX).for_each(|change| line(&mut change.path));
                *left_out += shorten(changes, |change: &ProtectedChange| weight(&change.path) + 40);
            }
            Self::RefsMoved { moves, left_out } => {
                moves.iter_mut().take(LIST_MAX).for_each(|moved| line(&mut moved.name));
                let heavy = |moved: &RefMove| weight(&moved.name) + 200;
                if moves.len() > LIST_MAX || moves.iter().map(heavy).sum::<usize>() > LIST_BYTES {
                    // Moves that need approval come first, so that none of them is cut for another.
                    moves.sort_by_key(|moved| !moved.needs_person);
                    moves.iter_mut().take(LIST_MAX).for_each(|moved| line(&mut moved.name));
                    *left_out += shorten(moves, heavy);
                }
            }
            Self::IterationEnded { signals, evidence, failing, .. } => {
                names(failing);
                names(&mut signals.evidence);
                signals.progress.iter_mut().for_each(line);
                shorten(&mut evidence.failing, |name: &String| weight(name));
            }
            Self::Gutter { evidence, tried, .. } => {
                names(evidence);
                names(tried);
            }
            Self::Stuck { evidence, context, .. } => {
                names(evidence);
                names(&mut context.recent_actions);
                names(&mut context.cycling_files);
                context.repeated_error.iter_mut().for_each(line);
            }
            Self::WentBack(back) => {
                line(&mut back.why);
                back.hint.iter_mut().for_each(text);
            }
            Self::Diagnosed(found) => {
                line(&mut found.summary);
                names(&mut found.suggestions);
            }
            Self::Criticised(said) => text(&mut said.objections),
            Self::PromiseAsked(asked) => line(&mut asked.answer),
            Self::ControlRefused { id, reason, .. } => [id, reason].into_iter().for_each(line),
            Self::ProofFinished { failed, hint, harness, difference, refused, question, .. } => {
                question.iter_mut().for_each(|question| of_question(question));
                refused.truncate(REFUSED_MAX);
                refused.iter_mut().for_each(of_check);
                names(failed);
                names(harness);
                names(difference);
                hint.iter_mut().for_each(text);
            }
            Self::HandoverFailed(failed) => {
                text(&mut failed.reason);
                failed.hint.iter_mut().for_each(text);
            }
            Self::ChecksSeen(seen) => {
                names(&mut seen.failing);
                long(&mut seen.feedback);
            }
            Self::ReviewSeen(seen) => long(&mut seen.feedback),
            Self::OverlapFound(found) => {
                found.prs.iter_mut().for_each(|pr| line(&mut pr.title));
                shorten(&mut found.prs, |pr| {
                    200 + weight(&pr.title)
                        + weight(&pr.url)
                        + pr.files.iter().map(|f| weight(f)).sum::<usize>()
                });
            }
            Self::Moved(moved) => of_start(&mut moved.baseline),
            Self::Notified(told) => told.why.iter_mut().for_each(line),
            Self::IterationVoided { reason, .. }
            | Self::CooldownSet { reason, .. }
            | Self::AgentDropped { reason, .. }
            | Self::ProofVoided { reason } => line(reason),
            Self::WaitStarted { reason: words, .. }
            | Self::BudgetWarning { message: words, .. }
            | Self::Mitigated { detail: words, .. }
            | Self::Tampered { what: words }
            | Self::Restored { what: words }
            | Self::NeedsHuman { message: words, .. }
            | Self::Finished { summary: words, .. }
            | Self::Suspended { by: words }
            | Self::Notice { message: words } => text(words),
            Self::ProofApproved(approved) => line(&mut approved.by),
            Self::EffectIntended(intended) => line(&mut intended.key),
            Self::DriverStarted { .. }
            | Self::Placed(_)
            | Self::Claimed { .. }
            | Self::Ticked { .. }
            | Self::CooldownCleared { .. }
            | Self::WaitEnded { .. }
            | Self::ControlReceived { .. }
            | Self::SpecChanged(_)
            | Self::ApprovalApplied(_)
            | Self::ProofStarted { .. }
            | Self::Published { .. }
            | Self::Pushed(_)
            | Self::PrWritten(_)
            | Self::Unknown => {}
        }
        self
    }

    fn bound_session(&mut self) {
        let Self::SessionEnded { end, message, ask, commit_message, commit_parts, findings, .. } = self
        else {
            return;
        };
        match end {
            SessionEnd::Failed { reason }
            | SessionEnd::RateLimited { reason, .. }
            | SessionEnd::Overloaded { reason }
            | SessionEnd::Unreachable { reason }
            | SessionEnd::Auth { reason }
            | SessionEnd::Billing { reason }
            | SessionEnd::ContextTooLong { reason }
            | SessionEnd::Refused { reason }
            | SessionEnd::Unfinished { reason } => line(reason),
            _ => {}
        }
        if let Some(Ask::Rotate { reason } | Ask::Pause { reason } | Ask::GiveUp { reason }) = ask {
            line(reason);
        }
        line(message);
        [commit_message, findings].into_iter().flatten().for_each(text);
        commit_parts.truncate(COMMIT_PARTS);
        for part in commit_parts {
            line(&mut part.message);
            part.paths.truncate(COMMIT_PATHS);
            part.paths.iter_mut().for_each(|path| cut(path, CHECK_LINE));
        }
    }
}

fn of_check(result: &mut CheckResult) {
    result.why.iter_mut().for_each(line);
    for list in [&mut result.failing, &mut result.last_lines] {
        list.truncate(CHECK_LINES);
        list.iter_mut().for_each(|line| cut(line, CHECK_LINE));
    }
}

fn of_question(question: &mut TestsQuestion) {
    question.failing.truncate(REFUSED_MAX);
    question.failing.iter_mut().for_each(of_check);
    question.changed.truncate(CHECK_LINES);
    for change in &mut question.changed {
        [&mut change.path, &mut change.what].into_iter().for_each(line);
    }
    names(&mut question.why);
}

fn of_start(baseline: &mut Baseline) {
    let total = baseline.dirty.len();
    if shorten(&mut baseline.dirty, |name: &String| weight(name)) > 0 {
        baseline.dirty_total = baseline.dirty_total.max(total);
    }
    names(&mut baseline.left_out);
}

/// Bytes of a text as JSON writes it.
fn weight(text: &str) -> usize {
    text.chars()
        .map(|c| {
            if c.is_control() {
                6
            } else if matches!(c, '"' | '\\') {
                2
            } else {
                c.len_utf8()
            }
        })
        .sum::<usize>()
        + 3
}

fn line(text: &mut String) {
    cut(text, LINE_MAX);
}

fn text(text: &mut String) {
    cut(text, TEXT_MAX);
}

fn long(text: &mut String) {
    cut(text, 4 * TEXT_MAX);
}

fn cut(text: &mut String, max: usize) {
    if weight(text) <= max {
        return;
    }
    let mut end = 0;
    let mut sum = 64;
    for (at, c) in text.char_indices() {
        sum += weight(c.encode_utf8(&mut [0; 4])) - 3;
        if sum > max {
            break;
        }
        end = at + c.len_utf8();
    }
    let more = text.len() - end;
    *text = format!("{} … ({} bytes left out)", head(text, end), more);
}

/// Keeps the beginning of a list; returns how many entries were dropped.
fn shorten<T>(list: &mut Vec<T>, weight: impl Fn(&T) -> usize) -> usize {
    let total = list.len();
    let mut sum = 0;
    let keep = list
        .iter()
        .take(LIST_MAX)
        .take_while(|entry| {
            sum += weight(entry);
            sum <= LIST_BYTES
        })
        .count();
    list.truncate(keep);
    total - keep
}

/// Keeps the beginning of a list for display; its last entry says how many were dropped.
fn names(list: &mut Vec<String>) {
    list.iter_mut().take(LIST_MAX).for_each(line);
    let gone = shorten(list, |name| weight(name));
    if gone > 0 {
        list.push(format!("… and {} more", gone));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_lists_are_cut_with_what_was_left_out() {
        let mut words = "é\u{1}".repeat(100_000);
        text(&mut words);
        assert!(weight(&words) <= TEXT_MAX && words.ends_with("bytes left out)"), "{}", words.len());
        let mut short = "as it is\n".to_owned();
        text(&mut short);
        assert_eq!(short, "as it is\n");
        let mut list = vec!["x".repeat(4095); 5000];
        names(&mut list);
        assert!(list.iter().map(|n| weight(n)).sum::<usize>() < LIST_BYTES + 100);
        let told = list.pop().unwrap_or_default();
        assert_eq!(told, format!("… and {} more", 5000 - list.len()));
        let mut few = vec!["a".to_owned(); LIST_MAX];
        names(&mut few);
        assert_eq!(few.len(), LIST_MAX);
    }
}
