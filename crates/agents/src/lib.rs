//! Backends of the [`Agent`](ralph_loop_domain::ports::Agent) port.
//!
//! - [`actions`] asks a model once per session and carries out the strict JSON actions that it answers with.
//! - [`ask`] puts one question to one model or agent: for doctor, critic and whoever needs no session.
//! - [`cli`] runs an installed command once per session and reads what it prints: plain text, or the formats of
//!   `claude`, `codex` and `gemini`.
//! - [`scripted`] plays a script of edits without any model, for demos and tests.
//! - [`tools`] gives a model real tools: commands, files, processes, a browser.
//! - [`presets`] knows how each CLI is called headless; [`probe`] tries whether one works here.
//! - [`models`] calls models over HTTP: four wires, retries, errors with what to do.
//! - [`session_hooks`]: how each CLI is told to ask `ralph hook` before its tools.
//! - [`limits`] reads reset times out of a provider's words.
//!
//! [`actions`], [`ask`], [`models`] and [`tools`] come with the feature `models`, which is on by default.
//!
//! Nothing here judges the work. A report says how a session ended, and it is taken from structured events, from results
//! marked as errors and from stderr of a failed exit; never from the agent's own prose, which may quote anything.
//! Whatever a process prints, memory stays bounded.

#[cfg(feature = "models")]
pub mod actions;
#[cfg(feature = "models")]
pub mod ask;
mod bounded;
pub mod cli;
pub mod limits;
#[cfg(feature = "models")]
pub mod models;
mod objects;
pub mod presets;
pub mod probe;
pub mod project_settings;
mod scan;
mod script;
pub mod scripted;
#[cfg(feature = "models")]
mod session;
pub mod session_hooks;
#[cfg(feature = "models")]
pub mod tools;

#[cfg(feature = "models")]
pub use actions::ActionsAgent;
#[cfg(feature = "models")]
pub use ask::BackendAsker;
pub use cli::{CliAgent, ProgramPlace, ProgramSource};
#[cfg(feature = "models")]
pub use models::{HttpModelClient, Route};
pub use scripted::ScriptedAgent;
#[cfg(feature = "models")]
pub use session::Pricing;
#[cfg(feature = "models")]
pub use tools::ToolsAgent;
