//! Records whether the user has seen how a run ended; unseen runs aren't cleaned up.

use ralph_loop_journal::registry::Registration;

const MARK: &str = "seen";

/// Marks the end as seen. Failing to write the mark is harmless.
pub fn mark(entry: &Registration) {
    let path = entry.run_dir().path().join(MARK);
    if !path.exists() {
        let _ = std::fs::write(path, "");
    }
}

pub fn is_marked(entry: &Registration) -> bool {
    entry.run_dir().path().join(MARK).exists()
}
