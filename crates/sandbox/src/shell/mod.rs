//! Sandboxes that are reached through a shell inside: containers and microVMs.
//!
//! The image only needs a POSIX `sh` and the usual small tools (busybox is enough). [`files`] are the file methods,
//! [`tree`] ends what a command started, [`wrap`] starts a command in its folder and reports if that fails.

pub(crate) mod files;
pub(crate) mod output;
pub(crate) mod tree;
pub(crate) mod wrap;

use ralph_loop_domain::ports::SandboxError;

/// The variable that marks every process of one command; `;` ends its value, so that no mark is a prefix of another.
pub(crate) const MARK: &str = "RALPH_EXEC";
/// The mark of the process that keeps a container alive.
pub(crate) const KEEPER: &str = "keeper;";
/// The mark of our own small scripts.
pub(crate) const HELPER: &str = "helper;";

pub(crate) trait Shell {
    /// Runs `sh -c script sh args…` with these bytes on standard input, marked as [`HELPER`].
    fn script(&self, script: &str, args: &[&str], stdin: &[u8]) -> Result<ScriptOutput, SandboxError>;
}

#[derive(Debug)]
pub(crate) struct ScriptOutput {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

impl ScriptOutput {
    /// Its standard error, in one short line.
    pub(crate) fn complaint(&self) -> String {
        let text = String::from_utf8_lossy(&self.stderr);
        let line = text.lines().next().unwrap_or_default();
        if line.is_empty() { format!("exit code {}", self.code) } else { line.chars().take(300).collect() }
    }
}

/// A unique mark, even among processes that reuse this one's id.
pub(crate) fn new_mark() -> String {
    use std::hash::{BuildHasher as _, RandomState};
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};
    static TOKEN: OnceLock<u64> = OnceLock::new();
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let token = TOKEN.get_or_init(|| RandomState::new().hash_one(std::process::id()));
    format!("{token:016x}.{};", NEXT.fetch_add(1, Ordering::Relaxed))
}
