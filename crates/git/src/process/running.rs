//! Finds git processes of this machine that work in a folder.

use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, getpgid};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const PAUSE_MS: u16 = 20;
const END: Duration = Duration::from_secs(10);

/// Whether a git process may work in one of these folders; unknown counts as yes.
pub(crate) fn git_works_in(folders: &[PathBuf]) -> bool {
    let Ok(processes) = git_processes() else { return true };
    processes.iter().any(|process| may_work_in(process, folders).unwrap_or_else(|| !is_over(process)))
}

/// Ends git processes that a killed process of this run left in `folder`, which is the run's alone. Git outlives its
/// parent, and would write into the folder's next content.
pub fn kill_git_in(folder: &Path) {
    let folders = [folder.to_owned()];
    let deadline = Instant::now() + END;
    loop {
        let processes = git_processes().unwrap_or_default();
        let here: Vec<&PathBuf> =
            processes.iter().filter(|process| may_work_in(process, &folders) == Some(true)).collect();
        if here.is_empty() || Instant::now() > deadline {
            return;
        }
        for process in here {
            let pid = process.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok());
            // The engine starts each git in a process group, so its helpers end with it.
            if let Some(group) = pid.and_then(|pid| getpgid(Some(Pid::from_raw(pid))).ok()) {
                let _ = killpg(group, Signal::SIGKILL);
            }
        }
        pause();
    }
}

fn git_processes() -> std::io::Result<Vec<PathBuf>> {
    let all = fs::read_dir("/proc")?.flatten().map(|entry| entry.path());
    let is_git = |process: &PathBuf| {
        fs::read_to_string(process.join("comm")).is_ok_and(|name| name.starts_with("git"))
            && !is_over(process)
    };
    Ok(all.filter(is_git).collect())
}

/// Whether a process works in one of the folders, or names one; `None` if unknown.
fn may_work_in(process: &Path, folders: &[PathBuf]) -> Option<bool> {
    let cwd = fs::read_link(process.join("cwd")).ok()?;
    if folders.iter().any(|folder| cwd.starts_with(folder)) {
        return Some(true);
    }
    // `git --git-dir=…`, `GIT_DIR=…` and `git clone … FOLDER` work from any folder.
    for file in ["cmdline", "environ"] {
        let text = fs::read(process.join(file)).ok()?;
        let named = |folder: &PathBuf| {
            let folder = folder.as_os_str().as_encoded_bytes();
            text.windows(folder.len()).any(|part| part == folder)
        };
        if folders.iter().any(named) {
            return Some(true);
        }
    }
    Some(false)
}

/// Whether a process has ended or is a zombie.
fn is_over(process: &Path) -> bool {
    let state = fs::read_to_string(process.join("status")).unwrap_or_default();
    state.is_empty() || state.lines().any(|line| line.starts_with("State:\tZ"))
}

pub(crate) fn pause() {
    let mut none: [nix::poll::PollFd<'_>; 0] = [];
    let _ = nix::poll::poll(&mut none, PAUSE_MS);
}
