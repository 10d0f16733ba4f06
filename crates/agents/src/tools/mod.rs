//! Agents of kind `tools`: a model with real tool calling, until it stops or its tokens run out.
//!
//! - [`agent`](ToolsAgent) is the backend, `conversation` its turns, `calls` the tool calls of one reply.
//! - `kit/` has the built-in tools, one per file; [`CustomTool`] adds the calling program's.
//! - `process/` keeps servers and watchers alive between sessions, `browser/` drives Chromium (feature `browser`).
//!
//! A tool that fails, is unknown or is called wrongly returns an error that the model reads; it never ends the
//! session. Everything that waits is stopped through `halt`.

mod agent;
mod args;
#[cfg(feature = "browser")]
mod browser;
#[cfg(feature = "browser")]
mod browser_manager;
mod calls;
mod conversation;
mod custom;
mod halt;
mod kit;
mod managers;
mod path_rules;
mod process;
mod toolbox;
#[cfg(feature = "typed-tools")]
mod typed;

pub use agent::ToolsAgent;
#[cfg(feature = "browser")]
pub use browser_manager::{BrowserManager, PageAction, PageShot, PageSight};
pub use custom::{CustomTool, ToolOutput};
pub use managers::{ManagerError, NewProcess, ProcessManager};
#[cfg(feature = "typed-tools")]
pub use typed::TypedTool;

/// The arguments that run a command line: with bash if available, as most people write for it.
fn shell(command: &str) -> Vec<String> {
    const SCRIPT: &str =
        "if command -v bash >/dev/null 2>&1; then exec bash -c \"$1\"; else exec sh -c \"$1\"; fi";
    ["sh", "-c", SCRIPT, "sh", command].map(str::to_owned).to_vec()
}
