//! Shows a run in a `.ralph/` folder: `.ralph/runs/<id>` links to the record while the run lives, and becomes a real
//! copy at its end. Nothing is ever read through it: an agent may write there.

use crate::error::JournalError;
use crate::folder::layout::{RalphDir, RunDir};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use ralph_loop_protocol::id::RunId;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Most bytes of a copy, except for the journal and the spec, which are always complete.
const COPY_MAX: u64 = 256 * 1024 * 1024;
const FILES_MAX: usize = 20_000;
/// What only matters to processes, or is git's.
const PASSING: &[&str] =
    &["git", "copy-git", "grown", "hooks", "lock", "wake", "events.idx", "live.jsonl", "live.1.jsonl"];
/// Lists in a copy what it lacks.
const LEFT_OUT: &str = "left-out.txt";

/// Makes `.ralph/runs/<id>` link to the record, replacing what an earlier end of the run had left there. Does nothing
/// if something else is in the way or the folder isn't ours: it is only for display.
pub fn link(dir: &RalphDir, run: &RunId, record: &RunDir) {
    if record.ralph_dir().is_some() || leads_to(dir, run, record) {
        return;
    }
    let _turn = take_turn(record, FlockArg::LockExclusive);
    let _ = put(dir, run, |partial| std::os::unix::fs::symlink(record.path(), partial));
}

/// Replaces the link of a finished run by its copy. Does nothing if another process is doing it.
pub fn complete(dir: &RalphDir, run: &RunId, record: &RunDir) {
    if leads_to(dir, run, record)
        && let Ok(_turn) = take_turn(record, FlockArg::LockExclusiveNonblock)
        && leads_to(dir, run, record)
    {
        let _ = copy_in_turn(dir, run, record);
    }
}

/// Whether the run is shown by a link to its record.
fn leads_to(dir: &RalphDir, run: &RunId, record: &RunDir) -> bool {
    fs::read_link(dir.run(run).path()).is_ok_and(|target| target == record.path())
}

/// One process at a time changes how a run is shown: every reader of a finished run completes it as well. An error
/// means that another process has the turn. Without file locks, every process has it.
fn take_turn(record: &RunDir, how: FlockArg) -> Result<Option<Flock<File>>, Errno> {
    let Ok(folder) = File::open(record.path()) else { return Ok(None) };
    match Flock::lock(folder, how) {
        Ok(turn) => Ok(Some(turn)),
        Err((_, Errno::EWOULDBLOCK)) => Err(Errno::EWOULDBLOCK),
        Err(_) => Ok(None),
    }
}

/// Removes the link or the copy: the run doesn't exist.
pub fn unlink(dir: &RalphDir, run: &RunId) {
    let place = dir.run(run).path().to_owned();
    if is_real(dir.path()) && is_real(&dir.join("runs")) {
        let _ = remove(&place);
        // Fails if the folder has other runs.
        let _ = std::fs::remove_dir(dir.join("runs"));
    }
}

/// Replaces the link by a copy of the record, which has no sockets and at most some hundred MiB: the newest
/// iterations come first.
pub fn copy(dir: &RalphDir, run: &RunId, record: &RunDir) -> Result<(), JournalError> {
    if record.ralph_dir().is_some() {
        return Ok(());
    }
    let _turn = take_turn(record, FlockArg::LockExclusive);
    copy_in_turn(dir, run, record)
}

fn copy_in_turn(dir: &RalphDir, run: &RunId, record: &RunDir) -> Result<(), JournalError> {
    let copied = put(dir, run, |partial| {
        let mut copying = Copying { bytes: 0, files: 0, left_out: 0 };
        copying.whole(record, partial)?;
        if copying.left_out > 0 {
            let text = format!("{} files are only in `{}`\n", copying.left_out, record.path().display());
            fs::write(partial.join(LEFT_OUT), text)?;
        }
        Ok(())
    });
    copied.map_err(|e| JournalError::file("copy the run to", dir.run(run).path(), e))
}

/// Replaces what shows a run by the output of `make`. Readers always find one of the two.
fn put(dir: &RalphDir, run: &RunId, make: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let place = dir.run(run).path().to_owned();
    let partial = dir.join("runs").join(format!(".{run}.partial"));
    folders(dir)?;
    let shown_before = is_ours(&place)?;
    // Left by a killed process; the name is ours.
    remove(&partial)?;
    if let Err(e) = make(&partial) {
        let _ = remove(&partial);
        return Err(e);
    }
    if shown_before && ralph_loop_safe_fs::exchange(&partial, &place)? {
        return remove(&partial);
    }
    remove(&place)?;
    fs::rename(&partial, &place)
}

/// Copies one file of the record again: it grew after the run's end was journaled.
pub fn renew(folder: &Path, run: &RunId, record: &RunDir, name: &str) {
    let dir = RalphDir::of(folder);
    let place = dir.run(run).path().to_owned();
    let from = record.path().join(name);
    let ours =
        [dir.path(), &dir.join("runs"), &place].into_iter().all(is_real) && record.ralph_dir().is_none();
    if ours && fs::symlink_metadata(&from).is_ok_and(|meta| meta.len() <= COPY_MAX) {
        let to = place.join(name);
        let _ = fs::remove_file(&to);
        let _ = fs::copy(from, to);
    }
}

fn folders(dir: &RalphDir) -> io::Result<()> {
    for folder in [dir.path().to_owned(), dir.join("runs")] {
        match fs::create_dir(&folder) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
            _ if is_real(&folder) => {}
            _ => return Err(io::ErrorKind::NotADirectory.into()),
        }
    }
    Ok(())
}

/// Removes a link, or a folder that holds a run. Any other folder is foreign.
fn remove(place: &Path) -> io::Result<()> {
    match is_ours(place)? {
        false => Ok(()),
        true if is_real(place) => fs::remove_dir_all(place),
        true => fs::remove_file(place),
    }
}

/// Whether the path shows a run: a link, or a folder that holds a run or nothing yet. A folder with other content is
/// foreign, and an error.
fn is_ours(place: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(place) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
        Ok(meta) if !meta.is_dir() => Ok(true),
        Ok(_) if place.join("spec.json").is_file() || fs::read_dir(place)?.next().is_none() => Ok(true),
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
    }
}

fn is_real(folder: &Path) -> bool {
    fs::symlink_metadata(folder).is_ok_and(|meta| meta.is_dir())
}

struct Copying {
    bytes: u64,
    files: usize,
    left_out: usize,
}

impl Copying {
    fn whole(&mut self, record: &RunDir, to: &Path) -> io::Result<()> {
        fs::create_dir(to)?;
        for path in [record.spec(), record.events()] {
            fs::copy(&path, to.join(path.file_name().unwrap_or_default()))?;
        }
        self.folder(record.path(), to, 0)
    }

    fn folder(&mut self, from: &Path, to: &Path, depth: usize) -> io::Result<()> {
        for path in newest_first(from)? {
            let name = path.file_name().unwrap_or_default();
            let (Ok(meta), target) = (fs::symlink_metadata(&path), to.join(name)) else { continue };
            if (depth == 0 && PASSING.iter().any(|passing| name == *passing)) || target.exists() {
                continue;
            }
            if meta.is_dir() && depth < 3 {
                fs::create_dir(&target)?;
                self.folder(&path, &target, depth + 1)?;
            } else if meta.is_file() && self.has_room(meta.len()) {
                fs::copy(&path, &target)?;
            }
        }
        Ok(())
    }

    fn has_room(&mut self, length: u64) -> bool {
        let fits = self.bytes + length <= COPY_MAX && self.files < FILES_MAX;
        if fits {
            self.bytes += length;
            self.files += 1;
        } else {
            self.left_out += 1;
        }
        fits
    }
}

/// Files before folders, and numbered folders from the highest.
fn newest_first(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
    let number =
        |path: &PathBuf| path.file_name().and_then(|n| n.to_str()).and_then(|n| n.parse::<u64>().ok());
    found.sort_by_key(|path| (is_real(path), std::cmp::Reverse(number(path)), path.clone()));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::layout::StateHome;

    struct Fixture {
        _folder: tempfile::TempDir,
        dir: RalphDir,
        record: RunDir,
        run: RunId,
    }

    fn fixture() -> Fixture {
        let folder = tempfile::tempdir().unwrap();
        let run = RunId::from("20261115-143307-k3f9");
        let dir = RalphDir::of(&folder.path().join("repo"));
        fs::create_dir_all(dir.path()).unwrap();
        let record = StateHome::at(&folder.path().join("state")).record(&run);
        record.create().unwrap();
        fs::write(record.spec(), "{}").unwrap();
        fs::write(record.events(), "").unwrap();
        fs::create_dir_all(record.iteration(2)).unwrap();
        fs::write(record.iteration(2).join("prompt.md"), "do").unwrap();
        fs::create_dir_all(record.git()).unwrap();
        fs::write(record.git().join("index"), "x").unwrap();
        Fixture { _folder: folder, dir, record, run }
    }

    #[test]
    fn a_run_is_shown_by_a_link_and_then_by_a_copy() {
        let f = fixture();
        let place = f.dir.run(&f.run);
        link(&f.dir, &f.run, &f.record);
        assert_eq!(fs::read_link(place.path()).unwrap(), f.record.path());
        copy(&f.dir, &f.run, &f.record).unwrap();
        assert!(is_real(place.path()));
        assert_eq!(fs::read_to_string(place.iteration(2).join("prompt.md")).unwrap(), "do");
        assert!(!place.git().exists(), "what is git's own stays in the record");
        link(&f.dir, &f.run, &f.record);
        assert_eq!(fs::read_link(place.path()).unwrap(), f.record.path(), "a resumed run is live again");
    }

    fn refused(f: &Fixture) -> io::ErrorKind {
        match copy(&f.dir, &f.run, &f.record) {
            Err(JournalError::File { verb: "copy the run to", source, .. }) => source.kind(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn foreign_files_stay() {
        let f = fixture();
        let place = f.dir.run(&f.run);
        fs::create_dir_all(place.path()).unwrap();
        fs::write(place.path().join("mine.txt"), "x").unwrap();
        link(&f.dir, &f.run, &f.record);
        assert_eq!(refused(&f), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(place.path().join("mine.txt")).unwrap(), "x");
    }

    #[test]
    fn readers_find_the_run_while_link_and_copy_are_swapped() {
        let f = fixture();
        fs::write(f.record.events(), "{}\n").unwrap();
        link(&f.dir, &f.run, &f.record);
        let journal = f.dir.run(&f.run).events();
        for _ in 0..50 {
            link(&f.dir, &f.run, &f.record);
            std::thread::scope(|scope| {
                let end = scope.spawn(|| copy(&f.dir, &f.run, &f.record));
                // Readers of a finished run complete it as well.
                scope.spawn(|| complete(&f.dir, &f.run, &f.record));
                while !end.is_finished() {
                    assert_eq!(fs::read_to_string(&journal).ok().as_deref(), Some("{}\n"));
                }
                end.join().unwrap().unwrap();
            });
            assert!(is_real(f.dir.run(&f.run).path()));
        }
        assert!(f.dir.run(&f.run).iteration(2).join("prompt.md").is_file());
        assert_eq!(fs::read_dir(f.dir.join("runs")).unwrap().count(), 1, "and nothing is left over");
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let f = fixture();
        let elsewhere = f.dir.path().with_file_name("elsewhere");
        fs::create_dir_all(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, f.dir.join("runs")).unwrap();
        link(&f.dir, &f.run, &f.record);
        assert_eq!(refused(&f), io::ErrorKind::NotADirectory);
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    }
}
