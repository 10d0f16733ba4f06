//! Searches everything a push would reveal for the user's secrets. What can't be searched isn't pushed.

use super::{HandoverFailure, HandoverResult, end_of};
use crate::run::Run;
use ralph_loop_domain::ports::{
    GitRemote, Outgoing, OutgoingPart, OutgoingSide, Publisher, Push, WorkspaceError,
};
use ralph_loop_domain::redact::Redactor;
use ralph_loop_protocol::id::CommitId;
use std::collections::BTreeSet;

/// Refuses a push if an agent wrote one of the user's secrets.
pub(super) fn refuse_secrets(run: &mut Run, remote: &GitRemote, pushes: &[Push]) -> HandoverResult<()> {
    let redactor = run.redactor.clone();
    if !redactor.knows_values() {
        return Ok(());
    }
    let publisher: &dyn Publisher = run.ports.workspace.publisher();
    let known = match publisher.remote_commits(remote)? {
        Ok(known) => known,
        Err(end) => {
            return end_of(end).map_err(Into::into).and_then(|reason| {
                let reason = reason.unwrap_or_else(|| "it does not say what it has".into());
                Err(unread(&reason).into())
            });
        }
    };
    let found = found_in(publisher, &redactor, &known, pushes).map_err(|e| unread(&e.to_string()))?;
    if found.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = found.iter().map(String::as_str).collect();
    Err(HandoverFailure::person(
        format!("the work contains the value of {}: nothing is pushed", names.join(", ")),
        "a commit of the run contains it, so removing it from the file isn't enough: rotate the secret, then `ralph resume`; or start over with `ralph run --new`",
    ).into())
}

fn unread(reason: &str) -> HandoverFailure {
    HandoverFailure::person(
        format!("can't scan the work for secrets: {reason}; nothing is pushed"),
        "run `git fsck` in the repo, repair what it reports, then `ralph resume`",
    )
}

/// Names of secrets that the push would reveal.
fn found_in(
    publisher: &dyn Publisher,
    redactor: &Redactor,
    known: &[CommitId],
    pushes: &[Push],
) -> Result<BTreeSet<String>, WorkspaceError> {
    let commits: Vec<CommitId> = pushes.iter().map(|push| push.commit.clone()).collect();
    let scan = |side: OutgoingSide| {
        let mut scan = redactor.scanner();
        let asked = Outgoing { commits: &commits, known, side };
        publisher.outgoing(&asked, &mut |part| match part {
            OutgoingPart::Name(name) => {
                scan.begin();
                scan.push(name);
            }
            OutgoingPart::Content => scan.begin(),
            OutgoingPart::Bytes(bytes) => scan.push(bytes),
        })?;
        Ok(scan.found().into_iter().map(str::to_owned).collect::<BTreeSet<String>>())
    };
    let mut found = scan(OutgoingSide::New)?;
    // Text already in the remote's files isn't secret from its readers.
    if !found.is_empty() {
        let there = scan(OutgoingSide::Base)?;
        found.retain(|name| !there.contains(name));
    }
    for push in pushes {
        found.extend(redactor.known_in(push.name.as_bytes()).into_iter().map(str::to_owned));
    }
    Ok(found)
}
