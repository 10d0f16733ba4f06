//! Finds locks without a holder, left by a session's git that was killed with its session.
//!
//! The engine takes a lock only between sessions, when their processes are gone. A lock counts as left behind if it
//! was made since the run began, hasn't changed for a while, and no living git can hold it. Any other lock stays.

use crate::process::running::{self, pause};
use crate::repo::{Repo, Tree};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// How long a lock in the run's own tree must be unchanged before it is checked.
const REST_OF_RUN: Duration = Duration::from_secs(2);
/// The same in the user's folder, where the user may be working.
const REST_OF_USER: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(500);
/// A git that starts or ends during a look may work anywhere, so more than one look is needed on a busy machine.
const LOOKS_MAX: u32 = 10;

#[derive(Debug, Clone)]
pub(crate) struct LeftLocks {
    start_mark: PathBuf,
    rest: Duration,
    waits_for_user: bool,
    folders: Vec<PathBuf>,
}

/// Identifies a lock between two checks: device, inode, size, time.
type LockIdentity = (u64, u64, u64, SystemTime);

#[derive(Debug, Default)]
pub(crate) struct WatchedLock {
    seen: Option<(LockIdentity, Instant)>,
    looked: Option<Instant>,
}

impl LeftLocks {
    pub(crate) fn new(repo: &Repo, tree: Tree, start_mark: PathBuf) -> Self {
        let rest = match tree {
            Tree::Run => REST_OF_RUN,
            Tree::User => REST_OF_USER,
        };
        let mut folders = vec![repo.top.clone(), repo.git_dir.clone(), repo.common_dir.clone()];
        if tree == Tree::User {
            folders.extend(repo.common_dir.parent().map(Path::to_owned));
        }
        Self { start_mark, rest, waits_for_user: tree == Tree::User, folders }
    }

    #[cfg(test)]
    pub(crate) fn at_once(folder: &Path, start_mark: PathBuf) -> Self {
        Self { start_mark, rest: Duration::ZERO, waits_for_user: false, folders: vec![folder.to_owned()] }
    }

    pub(crate) fn is_left(&self, lock: &Path, watched: &mut WatchedLock) -> bool {
        let Some(now) = identity(lock) else { return false };
        let since = match watched.seen {
            Some((before, since)) if before == now => since,
            _ => watched.seen.insert((now, Instant::now())).1,
        };
        // An old lock needs less watching.
        let rest = if self.is_old(lock) { self.rest.min(PAUSE) } else { self.rest };
        if since.elapsed() < rest || watched.looked.is_some_and(|at| at.elapsed() < PAUSE) {
            return false;
        }
        watched.looked = Some(Instant::now());
        let begun = fs::metadata(&self.start_mark).and_then(|meta| meta.modified());
        // Still the same lock after the process scan.
        begun.is_ok_and(|begun| now.3 >= begun)
            && !running::git_works_in(&self.folders)
            && identity(lock) == Some(now)
    }

    /// Removes the locks that were left behind, so that no later git fails on them. Called after a session. In the
    /// run's own tree it waits for certainty; the user's locks only get the time that has passed.
    pub(crate) fn sweep(&self, locks: &[PathBuf]) {
        for lock in locks {
            let mut watched = WatchedLock::default();
            let deadline = Instant::now() + self.rest + PAUSE * LOOKS_MAX;
            while identity(lock).is_some() && Instant::now() < deadline {
                if self.waits_for_user && !self.is_old(lock) {
                    break;
                }
                if self.is_left(lock, &mut watched) {
                    let _ = fs::remove_file(lock);
                }
                pause();
            }
        }
    }

    fn is_old(&self, lock: &Path) -> bool {
        let age = identity(lock).and_then(|lock| lock.3.elapsed().ok());
        age.is_some_and(|age| age >= self.rest)
    }
}

fn identity(lock: &Path) -> Option<LockIdentity> {
    let meta = fs::symlink_metadata(lock).ok()?;
    Some((meta.dev(), meta.ino(), meta.len(), meta.modified().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    struct Here {
        folder: tempfile::TempDir,
        locks: LeftLocks,
        lock: PathBuf,
    }

    fn here() -> Here {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("mark");
        fs::write(&mark, "").unwrap();
        let lock = folder.path().join("index.lock");
        fs::write(&lock, "half").unwrap();
        Here { locks: LeftLocks::at_once(folder.path(), mark), lock, folder }
    }

    /// Retries, because another test's git that ends at this moment hides its folder and counts as a possible holder.
    fn is_left_soon(here: &Here) -> bool {
        (0..1000).any(|_| here.locks.is_left(&here.lock, &mut WatchedLock::default()))
    }

    #[test]
    fn lock_without_a_holder_counts_as_left_behind() {
        let here = here();
        assert!(is_left_soon(&here));
        assert!(!here.locks.is_left(&here.folder.path().join("none.lock"), &mut WatchedLock::default()));
    }

    #[test]
    fn lock_older_than_the_run_stays() {
        let here = here();
        let file = fs::File::options().write(true).open(&here.lock).unwrap();
        let begun = fs::metadata(here.folder.path().join("mark")).unwrap().modified().unwrap();
        file.set_modified(begun - Duration::from_secs(3600)).unwrap();
        assert!(!here.locks.is_left(&here.lock, &mut WatchedLock::default()));
        fs::remove_file(here.folder.path().join("mark")).unwrap();
        assert!(!here.locks.is_left(&here.lock, &mut WatchedLock::default()));
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "a living git is needed")]
    fn locks_stay_while_a_git_process_runs_here() {
        let here = here();
        let repo = here.folder.path();
        assert!(Command::new("git").args(["init", "-q"]).arg(repo).status().unwrap().success());
        for (cwd, args) in [
            (repo, vec!["cat-file".to_owned(), "--batch".into()]),
            (
                Path::new("/"),
                vec![format!("--git-dir={}/.git", repo.display()), "cat-file".into(), "--batch".into()],
            ),
        ] {
            let mut git = Command::new("git")
                .current_dir(cwd)
                .args(args)
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            // `comm` is git's only once it has been started.
            while !fs::read_to_string(format!("/proc/{}/comm", git.id())).unwrap().starts_with("git") {
                std::thread::yield_now();
            }
            assert!(!here.locks.is_left(&here.lock, &mut WatchedLock::default()), "{cwd:?}");
            drop(git.stdin.take());
            git.wait().unwrap();
            assert!(is_left_soon(&here), "{cwd:?}");
        }
    }

    #[test]
    fn a_lock_that_changes_is_in_use() {
        let mut here = here();
        here.locks.rest = Duration::from_secs(3600);
        let mut watched = WatchedLock::default();
        assert!(!here.locks.is_left(&here.lock, &mut watched));
        let first = watched.seen;
        fs::write(&here.lock, "more").unwrap();
        fs::write(&here.lock, "more and more").unwrap();
        assert!(!here.locks.is_left(&here.lock, &mut watched));
        assert_ne!(first, watched.seen);
    }
}
