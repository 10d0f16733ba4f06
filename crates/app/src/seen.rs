//! Whether somebody has looked at how a run ended. What nobody has seen is not cleaned away.

use ralph_loop_journal::registry::Registration;

const MARK: &str = "seen";

/// Notes that somebody has seen the end of this run. A note that cannot be written costs nothing else.
pub fn mark(entry: &Registration) {
    let path = entry.run_dir().path().join(MARK);
    if !path.exists() {
        let _ = std::fs::write(path, "");
    }
}

/// Whether somebody has.
pub fn is_marked(entry: &Registration) -> bool {
    entry.run_dir().path().join(MARK).exists()
}
