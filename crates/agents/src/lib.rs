//! Backends of the [`Agent`](ralph_loop_domain::ports::Agent) port.
//!
//! - [`actions`] asks a model once per session and performs its strict JSON actions.
//! - [`ask`] puts one question to one model or agent, for doctor, critic and other callers without a session.
//! - [`cli`] runs an installed command once per session and parses its output: plain text, or the formats of
//!   `claude`, `codex` and `gemini`.
//! - [`scripted`] plays a script of edits without a model, for demos and tests.
//! - [`tools`] gives a model real tools: commands, files, processes, a browser.
//! - [`presets`] has each CLI's headless command line; [`probe`] tests whether one works here.
//! - [`models`] calls models over HTTP: four APIs, retries, errors with a next step.
//! - [`session_hooks`] makes each CLI call `ralph hook` before its tools.
//! - [`key_proxy`] keeps API keys of CLIs outside the sandbox.
//! - [`limits`] reads reset times from a provider's messages.
//!
//! [`actions`], [`ask`], [`key_proxy`], [`models`] and [`tools`] require the feature `models`, which is on by default.
//!
//! Nothing here judges the work. A report says how a session ended, based on structured events, results marked as
//! errors and stderr of a failed exit; never on the agent's own prose, which may quote anything. Memory stays
//! bounded, whatever a process prints.

#[cfg(feature = "models")]
pub mod actions;
#[cfg(feature = "models")]
pub mod ask;
mod bounded;
pub mod cli;
#[cfg(feature = "models")]
pub mod key_proxy;
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
