//! Service sockets that a sandboxed command doesn't see.

use std::os::unix::fs::FileTypeExt as _;
use std::path::PathBuf;

/// Sockets of services that `shows` says are visible: a process that can name one can use its service, even from a
/// separate network.
pub(in crate::local::isolation) fn sockets(shows: impl Fn(&PathBuf) -> bool) -> Vec<PathBuf> {
    /// The flag of a listening socket.
    const LISTENS: &str = "00010000";
    /// No machine has this many there.
    const MOST: usize = 200;
    let text = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let mut found: Vec<PathBuf> = text
        .lines()
        .filter_map(|line| {
            (field(line, 3)?.0 == LISTENS).then_some(())?;
            // The rest of the line, whatever it holds.
            let path = field(line, 6)?.1;
            path.starts_with('/').then(|| PathBuf::from(path))
        })
        .filter_map(|path| path.canonicalize().ok())
        .filter(shows)
        .filter(|path| path.metadata().is_ok_and(|about| about.file_type().is_socket()))
        .take(MOST)
        .collect();
    found.sort();
    found.dedup();
    found
}

fn field(line: &str, number: usize) -> Option<(&str, &str)> {
    let mut rest = line.trim_start();
    for _ in 0..number {
        rest = rest.split_once(' ')?.1.trim_start();
    }
    Some(rest.split_once(' ').unwrap_or((rest, "")))
}
