//! `ralph`'s loop as a library: a task with a checkable definition of done is given to fresh agent sessions until the result is
//! proven.
//!
//! [`LoopAgent`] is the loop as other programs embed it: built of ports, awaited like any future. The page [The loop as a
//! library](https://github.com/ralph-loop/ralph/blob/main/docs/LIBRARY.md) tells the whole of it; in short:
//!
//! ```
//! use ralph_loop_core::{Completion, LoopAgent};
//! use ralph_loop_sandbox::memory::{MemorySandbox, MemoryWorkspace};
//! # use ralph_loop_agents::ScriptedAgent;
//! # use ralph_loop_task::config::AgentConfig;
//! # let folder = tempfile::tempdir()?;
//! # let script = r#"{"version": 1, "turns": [{"do": [{"write": {"path": "DONE.md", "content": "done\n"}}], "say": "Done."}]}"#;
//! # let writer = ScriptedAgent::from_json(AgentConfig::command("writer", &[]), script)?;
//! # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! let sandbox = MemorySandbox::default();
//! let agent = LoopAgent::builder()
//!     .workspace(MemoryWorkspace::new(&sandbox))
//!     .sandbox(sandbox)
//!     .agent(writer)
//!     .task("Write DONE.md.")
//!     .repo(folder.path().join("repo"))
//!     .records(folder.path().join("records"))
//!     .completion(Completion::file("DONE.md"))
//!     .build()?;
//! let result = runtime.block_on(agent.run());
//! assert!(result.success);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`driver::Driver`] performs what [`ralph_loop_domain::decide::decide`] names, one step after the other, and appends what
//! happened to the journal. It knows the outside world only through the ports of [`ralph_loop_domain::ports`]; whoever wires
//! it (the command line, a server, your own program) hands over the backends in [`driver::DriverParts`]. A driver belongs to one
//! thread at a time but may move between them; several in one process do not know of each other.
//! [`handle::RunHandle`] watches and steers a run from anywhere, by its journal and its inbox alone.

mod append_only;
mod baseline;
mod changelog;
pub mod clock;
mod context;
pub mod driver;
mod driver_parts;
mod error;
mod file_stamp;
mod guardrails;
pub mod handle;
pub mod handover;
pub mod help;
mod inbox;
mod integrity;
mod kept_alive;
mod live;
mod log_tail;
pub mod loop_agent;
mod notify;
mod observers;
mod plan_progress;
pub mod prompt;
mod proof;
mod receipt;
mod refusals;
pub mod relocate;
pub mod replay;
mod resources;
mod result;
pub mod run_id;
mod run_writer;
mod sandboxes;
mod step;
mod stuck_detector;
mod task_book;

pub use context::CancelFlag;
pub use driver::{Driver, DriverParts, Progress};
pub use error::DriveError;
pub use help::{Helpers, StuckAdvisor, StuckContext};
pub use loop_agent::{
    AgentHandle, BuildError, Completion, ContextFile, Limits, LoopAgent, LoopAgentBuilder, LoopResult,
};
pub use notify::{catch_up, is_outstanding};
pub use observers::{LiveStatus, Observer};
pub use refusals::Refusals;
pub use run_writer::{RunWriter, WriterOptions};
pub use stuck_detector::StuckDetector;
pub use task_book::is_same_task;

/// The code of `docs/LIBRARY.md`, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/LIBRARY.md")]
struct LibraryPage;
