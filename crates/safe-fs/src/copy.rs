//! Copies one file between folders, with one open on either side.

use crate::open;
use crate::write::CREATE;
use crate::{SafeDir, invalid, permissions};
use rustix::fs::{AtFlags, Mode, OFlags, Timestamps};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Files up to this size are read at once; the kernel copies larger ones, sharing blocks if the file system can.
const BUFFER: usize = 128 * 1024;

/// A file's stat before and after it was copied.
#[derive(Debug)]
pub struct CopiedFile {
    pub source: Metadata,
    pub copy: Metadata,
}

/// Copies files; holds the buffer for small ones.
#[derive(Debug)]
pub struct Copier {
    buffer: Vec<u8>,
}

impl Default for Copier {
    fn default() -> Self {
        Self { buffer: vec![0; BUFFER] }
    }
}

impl Copier {
    /// Copies `name` from `from` to `to`: a file with its bytes, permissions and modification time (`Some`), or a
    /// link with the same target (`None`). The name must be free; anything but a file or link is an error.
    pub fn copy(&mut self, name: &OsStr, from: &SafeDir, to: &SafeDir) -> io::Result<Option<CopiedFile>> {
        if Path::new(name).components().count() != 1 || name == ".." {
            return Err(invalid("not a name"));
        }
        let opened = rustix::fs::openat(&from.handle, name, open::READ | OFlags::NOFOLLOW, Mode::empty());
        let mut source = match opened {
            Ok(handle) => open::regular(handle)?,
            Err(Errno::LOOP) => {
                let target = rustix::fs::readlinkat(&from.handle, name, Vec::new())?;
                rustix::fs::symlinkat(target, &to.handle, name)?;
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        let facts = source.metadata()?;
        let mode = permissions(facts.mode() & 0o777);
        let copy = rustix::fs::openat(&to.handle, name, CREATE, mode)?;
        let mut copy = File::from(copy);
        let done = self.fill(&mut source, &facts, &mut copy);
        if done.is_err() {
            let _ = rustix::fs::unlinkat(&to.handle, name, AtFlags::empty());
        }
        Ok(Some(CopiedFile { copy: done?, source: facts }))
    }

    fn fill(&mut self, source: &mut File, facts: &Metadata, copy: &mut File) -> io::Result<Metadata> {
        let mut rest = usize::try_from(facts.len()).unwrap_or(usize::MAX);
        if rest < self.buffer.len() {
            loop {
                let read = source.read(&mut self.buffer)?;
                copy.write_all(&self.buffer[..read])?;
                rest = rest.saturating_sub(read);
                if read == 0 || rest == 0 {
                    break;
                }
            }
        } else {
            io::copy(source, copy)?;
        }
        // Restores what the umask removed.
        if copy.metadata()?.mode() & 0o777 != facts.mode() & 0o777 {
            rustix::fs::fchmod(&*copy, permissions(facts.mode() & 0o777))?;
        }
        let time = rustix::fs::Timespec { tv_sec: facts.mtime(), tv_nsec: facts.mtime_nsec() };
        rustix::fs::futimens(&*copy, &Timestamps { last_access: time, last_modification: time })?;
        copy.metadata()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn only_files_and_links_are_copied_unchanged() {
        let base = tempfile::tempdir().unwrap();
        let [from, to] = ["from", "to"].map(|name| base.path().join(name));
        std::fs::create_dir(&from).unwrap();
        std::fs::create_dir(&to).unwrap();
        let long = vec![b'x'; BUFFER * 3 + 17];
        for (name, bytes) in [("empty", &b""[..]), ("small", b"abc"), ("long", &long)] {
            std::fs::write(from.join(name), bytes).unwrap();
        }
        std::fs::set_permissions(from.join("small"), std::fs::Permissions::from_mode(0o467)).unwrap();
        let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::new(1_000_000, 5);
        File::open(from.join("small")).unwrap().set_modified(old).unwrap();
        symlink("../outside", from.join("link")).unwrap();
        nix::unistd::mkfifo(&from.join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        std::fs::create_dir(from.join("folder")).unwrap();
        let [source, target] = [&from, &to].map(|path| SafeDir::open(path).unwrap());
        let mut copier = Copier::default();
        let mut copy = |name: &str| copier.copy(OsStr::new(name), &source, &target);
        for (name, bytes) in [("empty", &b""[..]), ("small", b"abc"), ("long", &long)] {
            let copied = copy(name).unwrap().unwrap();
            assert_eq!(std::fs::read(to.join(name)).unwrap(), bytes, "{name}");
            assert_eq!(copied.source.modified().unwrap(), copied.copy.modified().unwrap(), "{name}");
            assert_eq!(copied.copy.ino(), std::fs::metadata(to.join(name)).unwrap().ino());
        }
        assert_eq!(std::fs::metadata(to.join("small")).unwrap().mode() & 0o7777, 0o467);
        assert_eq!(std::fs::metadata(to.join("small")).unwrap().modified().unwrap(), old);
        assert!(copy("link").unwrap().is_none());
        assert_eq!(std::fs::read_link(to.join("link")).unwrap(), Path::new("../outside"));
        for (name, why) in [
            ("fifo", "not a regular file"),
            ("folder", "not a regular file"),
            ("..", "not a name"),
            ("a/b", "not a name"),
            ("small", "exists"),
            ("link", "exists"),
            ("none", "No such file"),
        ] {
            let error = copy(name).unwrap_err().to_string();
            assert!(error.contains(why), "{name}: {error}");
        }
    }
}
