//! A browser's folder: its profile and two pipes, seen from here and from the browser.
//!
//! In a sandbox a hostile command can write there as well. So everything is opened through descriptors and never
//! through a link: what that command puts in place of a pipe isn't used.

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, mkdirat};
use ralph_loop_domain::ports::Sandbox;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A temporary folder, removed on drop.
#[derive(Debug)]
pub(super) struct TempFolder {
    outside: PathBuf,
    /// As the browser sees it.
    pub(super) inside: PathBuf,
    opened: OwnedFd,
}

impl TempFolder {
    /// Creates one that the sandbox's commands can use; in `temp` if it shares the whole machine.
    pub(super) fn new(sandbox: &dyn Sandbox, temp: &Path) -> std::io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("ralph-browser-{}-{number}", std::process::id());
        let exchange = sandbox.exchange();
        let (base, inside) = match &exchange {
            Some(exchange) => (exchange.outside.clone(), exchange.inside.join(&name)),
            None => (temp.to_owned(), temp.join(&name)),
        };
        let outside = base.join(&name);
        // Left behind by a killed process with the same number.
        remove(&outside);
        let above = File::open(&base)?;
        mkdirat(&above, name.as_str(), Mode::S_IRWXU)?;
        let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let opened = openat(&above, name.as_str(), flags, Mode::empty())?;
        Ok(Self { outside, inside, opened })
    }

    /// Creates a pipe, open in both directions, so that opening doesn't block. Returns its path as the browser sees
    /// it.
    pub(super) fn pipe(&self, name: &str) -> Result<(String, File), Errno> {
        self.make_pipe(name, Mode::S_IRUSR | Mode::S_IWUSR)?;
        let flags = OFlag::O_RDWR | OFlag::O_NONBLOCK | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let opened = openat(&self.opened, name, flags, Mode::empty())?;
        let about: FileStat = fstat(&opened)?;
        if SFlag::from_bits_truncate(about.st_mode) & SFlag::S_IFMT != SFlag::S_IFIFO {
            return Err(Errno::EPERM);
        }
        Ok((self.inside.join(name).to_string_lossy().into_owned(), File::from(opened)))
    }

    #[cfg(target_os = "linux")]
    fn make_pipe(&self, name: &str, mode: Mode) -> Result<(), Errno> {
        nix::unistd::mkfifoat(&self.opened, name, mode)
    }

    /// By path: nothing here is in a sandbox.
    #[cfg(not(target_os = "linux"))]
    fn make_pipe(&self, name: &str, mode: Mode) -> Result<(), Errno> {
        nix::unistd::mkfifo(&self.outside.join(name), mode)
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        remove(&self.outside);
    }
}

fn remove(path: &Path) {
    // A leftover in a folder for temporary files is harmless.
    std::fs::remove_dir_all(path).ok();
}
