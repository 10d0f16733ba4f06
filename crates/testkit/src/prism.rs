//! Prism, the proxy that checks clients and fakes against a published specification.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "tests start processes and wait for them")]

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub struct Prism {
    child: Child,
    pub url: String,
}

impl Prism {
    /// Starts Prism between a client and `upstream`, with `spec`.
    pub fn start(program: &Path, spec: &Path, upstream: &str) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let log = tempfile::NamedTempFile::new().unwrap();
        let mut child = Command::new(program)
            .args(["proxy", "--errors", "-h", "127.0.0.1", "-p", &port.to_string()])
            .arg(spec)
            .arg(upstream)
            .stdout(log.reopen().unwrap())
            .stderr(log.reopen().unwrap())
            .spawn()
            .unwrap();
        let end = Instant::now() + Duration::from_secs(120);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = child.try_wait().unwrap();
            assert!(
                ended.is_none() && Instant::now() < end,
                "prism does not come up ({ended:?}): {}",
                std::fs::read_to_string(log.path()).unwrap_or_default()
            );
            std::thread::sleep(Duration::from_millis(100));
        }
        Self { child, url: format!("http://127.0.0.1:{port}") }
    }
}

impl Drop for Prism {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program and the folder of specifications; `None` with a message that names `whose` if one is missing.
pub fn tools(whose: &str) -> Option<(PathBuf, PathBuf)> {
    if std::env::var("RALPH_PRISM").is_ok_and(|v| v == "0") {
        crate::skip(&format!("{whose}: RALPH_PRISM=0"));
        return None;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let specs = root.join("../shared/facts/specs");
    if !specs.is_dir() {
        crate::skip(&format!("{whose}: ../shared/facts/specs doesn't exist"));
        return None;
    }
    let output = Command::new(root.join("scripts/prism")).stderr(Stdio::inherit()).output().unwrap();
    if !output.status.success() {
        crate::skip(&format!("{whose}: prism cannot be installed here"));
        return None;
    }
    let modules = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
    Some((modules.join(".bin/prism"), specs))
}
