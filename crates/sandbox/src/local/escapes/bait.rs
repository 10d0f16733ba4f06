//! The targets of the attempts: files, a process, a port and a socket outside the sandbox.

use crate::{LocalOptions, LocalSandbox};
use ralph_loop_domain::ports::{ExecRequest, ExecSink, Sandbox as _, SandboxError, StopCause, Stream};
use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::ControlFlow;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(10);

/// The bait; everything is removed when dropped.
pub(super) struct SecretFixture {
    pub(super) folder: PathBuf,
    pub(super) pid: i32,
    pub(super) port: u16,
    /// Marks leftovers: part of their arguments.
    pub(super) mark: String,
    over: Arc<AtomicBool>,
    sleeper: Option<JoinHandle<()>>,
    _server: TcpListener,
    _service: UnixListener,
}

/// Ends its command on request.
struct Until(Arc<AtomicBool>);

impl ExecSink for Until {
    fn output(&mut self, _: Stream, _: &[u8]) {}
    fn poll(&mut self) -> ControlFlow<StopCause> {
        if self.0.load(Ordering::SeqCst) {
            ControlFlow::Break(StopCause::Cancelled)
        } else {
            ControlFlow::Continue(())
        }
    }
}

impl SecretFixture {
    /// Creates the bait in `folder` and in the workspace `work`.
    pub(super) fn lay(folder: &Path, work: &Path, options: LocalOptions) -> Result<Self, SandboxError> {
        let laid = |error: io::Error| SandboxError::Broken(format!("the bait cannot be laid out: {error}"));
        fs::create_dir_all(folder).map_err(laid)?;
        fs::write(folder.join("outside"), "untouched\n").map_err(laid)?;
        fs::write(folder.join("secret"), "bait-secret\n").map_err(laid)?;
        let others = work.join("others");
        fs::write(&others, "bait-secret\n").map_err(laid)?;
        private(&others).map_err(laid)?;
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(laid)?;
        let port = server.local_addr().map_err(laid)?.port();
        let service = UnixListener::bind(folder.join("service.sock")).map_err(laid)?;
        let over = Arc::new(AtomicBool::new(false));
        let mark = format!("ralph-bait-{}-{port}", std::process::id());
        let sandbox = LocalSandbox::start(folder, options)?;
        let mut request = ExecRequest::new(
            ["sh", "-c", "echo $$ > pid.new && mv pid.new pid && exec sleep 600"].map(String::from).to_vec(),
        );
        request.env = vec![("BAIT_TOKEN".into(), "bait-secret".into())];
        let told = Arc::clone(&over);
        let sleeper = std::thread::spawn(move || {
            sandbox.exec(&request, &mut Until(told)).ok();
        });
        let mut bait = Self {
            folder: folder.to_owned(),
            pid: 0,
            port,
            mark,
            over,
            sleeper: Some(sleeper),
            _server: server,
            _service: service,
        };
        bait.pid = bait.wait_for_pid()?;
        Ok(bait)
    }

    fn wait_for_pid(&self) -> Result<i32, SandboxError> {
        let deadline = Instant::now() + TIMEOUT;
        while Instant::now() < deadline {
            if let Some(pid) =
                fs::read_to_string(self.folder.join("pid")).ok().and_then(|t| t.trim().parse().ok())
            {
                return Ok(pid);
            }
            nix::poll::poll(&mut [], 2u8).ok();
        }
        Err(SandboxError::Broken("the process that is the bait did not start".to_owned()))
    }

    /// Whether the file outside has changed; restores it.
    pub(super) fn outside_changed(&self) -> bool {
        let file = self.folder.join("outside");
        let changed = fs::read_to_string(&file).ok().as_deref() != Some("untouched\n");
        fs::write(&file, "untouched\n").ok();
        changed
    }

    pub(super) fn process_dead(&self) -> bool {
        let pid = nix::unistd::Pid::from_raw(self.pid);
        nix::sys::signal::kill(pid, None).is_err() || crate::os::zombie(pid)
    }

    pub(super) fn survivor_lives(&self) -> bool {
        crate::os::all().into_iter().any(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).any(|word| word == self.mark.as_bytes())
        })
    }
}

/// A file that only another user may read, if this user may give files away.
fn private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    if nix::unistd::getuid().is_root() {
        std::os::unix::fs::chown(path, Some(65534), Some(65534))?;
    } else {
        fs::set_permissions(path, fs::Permissions::from_mode(0o000))?;
    }
    Ok(())
}

impl Drop for SecretFixture {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        if let Some(sleeper) = self.sleeper.take() {
            sleeper.join().ok();
        }
        fs::remove_dir_all(&self.folder).ok();
    }
}
