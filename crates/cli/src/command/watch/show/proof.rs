//! Reads `proof.json`, and `ralph show --proof`.

use crate::error::CommandError;
use crate::output::Out;
use crate::text::proof_text::print;
use ralph_loop_app::read::facts::RunSnapshot;
use ralph_loop_app::trust::repo_file;
use ralph_loop_domain::proof::Proof;
use std::path::Path;

/// `None` if missing or incomplete.
pub fn read(path: &Path) -> Option<Proof> {
    Proof::parse(&repo_file::read_record(path).ok()?).ok()
}

/// `ralph show --proof`.
pub fn show(facts: &RunSnapshot, out: &Out) -> Result<u8, CommandError> {
    let id = &facts.entry.run_id;
    let path = facts.entry.run_dir().proof();
    let Ok(text) = repo_file::read_record(&path) else {
        return Err(CommandError::usage(format!("run {id} has no proof (yet)"))
            .hint("the final check runs once the agent says it's done and every check passes"));
    };
    if out.json {
        let value: serde_json::Value = serde_json::from_slice(&text)
            .map_err(|e| CommandError::environment(format!("cannot read `{}`: {e}", path.display())))?;
        out.value(&value);
        return Ok(0);
    }
    let proof = Proof::parse(&text)
        .map_err(|e| CommandError::environment(format!("cannot read `{}`: {e}", path.display())))?;
    print(&proof, facts.now, out);
    Ok(0)
}
