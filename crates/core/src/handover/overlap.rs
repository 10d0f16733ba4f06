//! Reports other open pull requests on the same files early, while agreeing is cheap.

use super::HandoverResult;
use crate::run::Run;
use ralph_loop_protocol::event::{EventBody, OverlapFound, OverlapWith};
use ralph_loop_task::config::Overlap;

/// Limits for pull requests examined, and for files named per pull request.
const PRS: usize = 30;
const FILES: usize = 10;

pub(crate) fn find_overlap(run: &mut Run) -> HandoverResult<()> {
    let state = &run.ledger.state;
    let policy = state.spec.settings.handover.overlap;
    let Some(forge) = run.ports.forge.as_deref().filter(|_| policy != Overlap::Off) else { return Ok(()) };
    let own = state.handover.pr.as_ref().map(|pr| pr.number);
    let mut prs = Vec::new();
    for pr in forge.open_prs()?.into_iter().filter(|pr| Some(pr.number) != own).take(PRS) {
        let mut files = forge.pr_files(pr.number)?;
        files.retain(|file| state.work.touched.contains(file));
        files.truncate(FILES);
        if !files.is_empty() {
            prs.push(OverlapWith { number: pr.number, url: pr.url, title: pr.title, files });
        }
    }
    if prs != state.handover.overlap {
        let pause = policy == Overlap::Pause && prs.iter().any(|pr| !state.handover.overlap.contains(pr));
        run.record(EventBody::OverlapFound(OverlapFound { prs, pause }))?;
    }
    Ok(())
}
