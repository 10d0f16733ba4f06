//! Approvals: of moved refs and a changed configuration, and of changed tests.

use crate::error::DriveError;
use crate::ledger::Ledger;
use crate::run::Run;
use ralph_loop_domain::proof::Proof;
use ralph_loop_journal::folder::{artifacts, snapshot};
use ralph_loop_protocol::event::{ApprovalApplied, EventBody, ProofApproved};
use ralph_loop_protocol::id::Digest;

/// Accepts the current refs and configuration as the new baseline, after an approval.
pub(super) fn handle_approval(run: &mut Run) -> Result<(), DriveError> {
    if !run.state.people.approval_pending || run.state.baseline.is_none() {
        return Ok(());
    }
    run.ports.workspace.accept_refs()?;
    accept_config(&mut run.ledger)
}

/// Accepts the current configuration as the baseline after an approval. Frozen settings stay.
fn accept_config(ledger: &mut Ledger) -> Result<(), DriveError> {
    let config = ledger.dir.config_digest();
    let mut spec = ledger.state.spec.clone();
    spec.config_digest.clone_from(&config);
    let spec = snapshot::write_spec(ledger.journal.places(), &spec)?;
    ledger.record(EventBody::ApprovalApplied(ApprovalApplied { config, spec })).map(|_| ())
}

/// Records your approval in the proof.
pub(super) fn approve_tests(run: &mut Run) -> Result<(), DriveError> {
    let state = &run.ledger.state;
    let Some(by) = state.people.tests_approved_by.clone() else { return Ok(()) };
    let Some(facts) = state.result.proof.clone() else { return Ok(()) };
    let (path, asked) = (run.record_dir.proof(), run.record_dir.path().join("proof/asked.json"));
    // A killed process may have written only one of them.
    let found = [&path, &asked].into_iter().find_map(|path| {
        let text = std::fs::read(path).ok().filter(|text| Some(Digest::of(text)) == facts.proof)?;
        Proof::parse(&text).ok().map(|proof| (text, proof))
    });
    let Some((text, proof)) = found else {
        let reason = format!("`{}` isn't what was journaled", path.display());
        return run.record(EventBody::ProofVoided { reason }).map(|_| ());
    };
    artifacts::write_durable(&asked, &text)?;
    let text = serde_json::to_vec_pretty(&proof.approved(&by)).unwrap_or_default();
    artifacts::write_durable(&path, &text)?;
    run.boundary("approve.written");
    let approved = ProofApproved { commit: facts.commit, proof: Digest::of(&text), by };
    run.record(EventBody::ProofApproved(approved))?;
    run.flush()?;
    run.boundary("approve.after");
    Ok(())
}
