//! Records whether the user has seen how a run ended, and whether its work was committed elsewhere: unseen runs and
//! the only copies of work aren't cleaned up.

use ralph_loop_journal::folder::registry::Registration;

const SEEN: &str = "seen";
const TAKEN: &str = "taken";

/// Marks the end as seen. Failing to write the mark is harmless.
pub fn mark(entry: &Registration) {
    write(entry, SEEN);
}

pub fn is_marked(entry: &Registration) -> bool {
    is_there(entry, SEEN)
}

/// Marks the work as committed by `ralph apply`.
pub fn mark_taken(entry: &Registration) {
    write(entry, TAKEN);
}

pub fn is_taken(entry: &Registration) -> bool {
    is_there(entry, TAKEN)
}

fn write(entry: &Registration, name: &str) {
    let path = entry.run_dir().path().join(name);
    if !path.exists() {
        let _ = std::fs::write(path, "");
    }
}

fn is_there(entry: &Registration, name: &str) -> bool {
    entry.run_dir().path().join(name).exists()
}
