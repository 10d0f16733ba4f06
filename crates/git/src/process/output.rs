//! Feeds a child process and drains its output in one loop with a deadline.

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::process::Child;
use std::time::Instant;

const MAX_STDERR: usize = 16 * 1024;

pub(crate) type PieceSink<'a> = Option<&'a mut dyn FnMut(&[u8])>;

pub(crate) enum ReadEnd {
    Eof,
    Full,
    TimedOut,
}

#[derive(Default)]
pub(crate) struct OutputReader {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

impl OutputReader {
    /// Feeds stdin and drains both outputs in one loop, so that no full pipe can block git. With a `sink`, stdout
    /// goes there and isn't kept.
    pub(crate) fn run(
        &mut self,
        child: &mut Child,
        input: &[u8],
        max: usize,
        deadline: Instant,
        mut sink: PieceSink<'_>,
    ) -> std::io::Result<ReadEnd> {
        let mut stdin = child.stdin.take();
        let mut stdout = child.stdout.take();
        let mut stderr = child.stderr.take();
        let mut written = 0;
        if let Some(pipe) = &stdin {
            fcntl(pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        }
        let mut buffer = vec![0; 64 * 1024];
        while stdout.is_some() || stderr.is_some() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(ReadEnd::TimedOut);
            }
            let wait = PollTimeout::try_from(left.as_millis().clamp(1, 60_000) as i32)
                .unwrap_or(PollTimeout::from(1000_u16));
            let mut fds = Vec::with_capacity(3);
            fds.extend(stdout.as_ref().map(|p| PollFd::new(p.as_fd(), PollFlags::POLLIN)));
            fds.extend(stderr.as_ref().map(|p| PollFd::new(p.as_fd(), PollFlags::POLLIN)));
            fds.extend(stdin.as_ref().map(|p| PollFd::new(p.as_fd(), PollFlags::POLLOUT)));
            match poll(&mut fds, wait) {
                Ok(_) | Err(nix::errno::Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
            let mut ready = fds.iter().map(|fd| fd.any().unwrap_or(false)).collect::<Vec<_>>().into_iter();
            let (out_ready, err_ready, in_ready) = (
                stdout.is_some() && ready.next().unwrap_or(false),
                stderr.is_some() && ready.next().unwrap_or(false),
                stdin.is_some() && ready.next().unwrap_or(false),
            );
            if out_ready && read_some(&mut stdout, &mut buffer, &mut self.stdout)? {
                if let Some(sink) = &mut sink {
                    sink(&self.stdout);
                    self.stdout.clear();
                }
                if self.stdout.len() > max {
                    self.stdout.truncate(max);
                    return Ok(ReadEnd::Full);
                }
            }
            if err_ready && read_some(&mut stderr, &mut buffer, &mut self.stderr)? {
                let excess = self.stderr.len().saturating_sub(MAX_STDERR);
                self.stderr.drain(..excess);
            }
            if in_ready && let Some(pipe) = stdin.as_mut() {
                match pipe.write(&input[written..]) {
                    Ok(n) => written += n,
                    Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                    // Git didn't read the rest; its exit code says why.
                    Err(_) => written = input.len(),
                }
                if written == input.len() {
                    stdin = None;
                }
            }
        }
        Ok(ReadEnd::Eof)
    }
}

fn read_some<R: Read>(pipe: &mut Option<R>, buffer: &mut [u8], into: &mut Vec<u8>) -> std::io::Result<bool> {
    let Some(reader) = pipe.as_mut() else { return Ok(false) };
    match reader.read(buffer) {
        Ok(0) => {
            *pipe = None;
            Ok(false)
        }
        Ok(n) => {
            into.extend_from_slice(&buffer[..n]);
            Ok(true)
        }
        Err(e) if e.kind() == ErrorKind::Interrupted => Ok(false),
        Err(e) => Err(e),
    }
}
