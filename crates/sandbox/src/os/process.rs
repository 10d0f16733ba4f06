//! The process table, read from `/proc`.

use nix::unistd::Pid;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::MetadataExt as _;

pub(crate) fn all() -> Vec<Pid> {
    numbers("/proc")
}

pub(crate) fn children(pid: Pid) -> Vec<Pid> {
    let mut found = Vec::new();
    if !listed_children(pid, &mut found) {
        found.extend(all().into_iter().filter(|p| parent(*p) == Some(pid)));
    }
    found
}

/// Everything below `root` in one pass: processes that fork at the same time may be missing, so repeat until nothing
/// is left to be sure.
pub(crate) fn descendants(root: Pid) -> Vec<Pid> {
    let mut found = Vec::new();
    if !listed_children(root, &mut found) {
        return descendants_by_parent(root);
    }
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        listed_children(pid, &mut found);
        next += 1;
    }
    found
}

/// Adds the kernel's list of children, kept per thread; `false` if the kernel has none (or `pid` is gone).
fn listed_children(pid: Pid, found: &mut Vec<Pid>) -> bool {
    let mut any = false;
    for thread in numbers(&format!("/proc/{pid}/task")) {
        let Ok(text) = fs::read_to_string(format!("/proc/{pid}/task/{thread}/children")) else { continue };
        any = true;
        found.extend(text.split_ascii_whitespace().filter_map(|n| n.parse().ok()).map(Pid::from_raw));
    }
    any
}

/// Like [`descendants`], from the parents of all processes; for kernels without lists of children.
fn descendants_by_parent(root: Pid) -> Vec<Pid> {
    let table: Vec<(Pid, Pid)> =
        all().into_iter().filter_map(|pid| parent(pid).map(|parent| (pid, parent))).collect();
    let mut found = vec![root];
    let mut next = 0;
    while let Some(above) = found.get(next).copied() {
        found.extend(table.iter().filter(|(_, parent)| *parent == above).map(|(pid, _)| *pid));
        next += 1;
    }
    found.remove(0);
    found
}

fn numbers(folder: &str) -> Vec<Pid> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok()))
        .map(Pid::from_raw)
        .collect()
}

/// One field of `/proc/<pid>/stat` after the name; 0 is the state.
fn stat_field(pid: Pid, field: usize) -> Option<String> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may itself hold spaces and parentheses.
    let after = text.iter().rposition(|byte| *byte == b')')? + 1;
    let rest = std::str::from_utf8(text.get(after..)?).ok()?;
    rest.split_ascii_whitespace().nth(field).map(str::to_owned)
}

pub(crate) fn parent(pid: Pid) -> Option<Pid> {
    stat_field(pid, 1)?.parse().ok().map(Pid::from_raw)
}

/// The session of `pid`; also known for a zombie.
pub(crate) fn session(pid: Pid) -> Option<Pid> {
    stat_field(pid, 3)?.parse().ok().map(Pid::from_raw)
}

/// Whether `pid` is dead (maybe a zombie).
pub(crate) fn zombie(pid: Pid) -> bool {
    stat_field(pid, 0).is_none_or(|state| state == "Z" || state == "X")
}

pub(crate) fn owner(pid: Pid) -> Option<u32> {
    fs::metadata(format!("/proc/{pid}")).ok().map(|meta| meta.uid())
}

/// How readily the system kills `pid` when memory runs out.
pub(crate) fn killable_mark(pid: Pid) -> Option<i32> {
    fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).ok()?.trim().parse().ok()
}

/// Whether `pid` was started with `entry` (`NAME=value`) in its environment.
pub(crate) fn carries(pid: Pid, entry: &str) -> bool {
    let Ok(file) = fs::File::open(format!("/proc/{pid}/environ")) else { return false };
    BufReader::new(file).split(0).map_while(Result::ok).any(|one| one == entry.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::getpid;

    #[test]
    fn both_ways_find_the_same_descendants() {
        #[allow(clippy::disallowed_methods)]
        let mut child = std::process::Command::new("sh")
            .args(["-c", "sleep 100 & a=$!; sleep 100 & b=$!; read x; kill $a $b"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let shell = Pid::from_raw(i32::try_from(child.id()).unwrap());
        let (mut fast, mut slow) = (Vec::new(), Vec::new());
        for _ in 0..2000 {
            (fast, slow) = (descendants(shell), descendants_by_parent(shell));
            if fast.len() == 2 && slow.len() == 2 {
                break;
            }
            nix::poll::poll(&mut [], 2u8).unwrap();
        }
        fast.sort();
        slow.sort();
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(fast.len(), 2);
        assert_eq!(fast, slow);
    }

    #[test]
    fn this_process_is_described() {
        let me = getpid();
        assert_eq!(parent(me), Some(nix::unistd::getppid()));
        assert_eq!(session(me), nix::unistd::getsid(None).ok());
        assert!(!zombie(me));
        assert!(all().contains(&me));
        assert!(!carries(me, "RALPH_RUN=unused-value"));
    }
}
