//! `ralph`'s loop as a library: runs a task with checkable success conditions through fresh agent sessions until
//! the result is proven.
//!
//! [`LoopAgent`] embeds the loop in other programs: built from ports, awaited like any future. [The loop as a
//! library](https://github.com/ralph-loop/ralph/blob/main/docs/LIBRARY.md) documents it. In short:
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
//! [`driver::drive`] performs the steps that [`ralph_loop_domain::decide::decide`] names and appends what happened
//! to the journal of a [`Run`]. It reaches the outside world only through the ports of [`ralph_loop_domain::ports`]; the
//! command line, a server or your own program passes the backends as [`RunPorts`]. A run can move
//! between threads, and one process can drive several. [`handle::RunHandle`] watches and steers a run through its
//! journal and inbox alone.

mod cancel;
pub mod clock;
pub mod driver;
mod error;
pub mod handle;
pub mod handover;
pub mod help;
mod inbox;
mod ledger;
pub mod loop_agent;
mod notify;
mod observers;
mod ports;
pub mod prompt;
mod proof;
mod record;
mod result;
pub mod resume;
mod run;
pub mod run_id;
mod steps;
mod stuck_detector;

pub use cancel::CancelToken;
pub use driver::Progress;
pub use error::DriveError;
pub use help::{Helpers, StuckAdvisor, StuckContext};
pub use loop_agent::{
    AgentHandle, BuildError, Completion, ContextFile, Limits, LoopAgent, LoopAgentBuilder, LoopResult,
};
pub use notify::{catch_up, is_outstanding};
pub use observers::{Observer, SessionProgress};
pub use ports::{Refusals, RunHooks, RunPorts};
pub use proof::prove_commit::{
    CommitProof, CommitToProve, HunkLimits, HunkReport, UnnoticedHunk, prove_commit,
};
pub use record::task_book::is_same_task;
pub use resume::run_writer::{RunWriter, WriterOptions};
pub use run::Run;
pub use steps::consult::consult_doctor;
pub use stuck_detector::StuckDetector;

/// Compiles and runs the code of `docs/LIBRARY.md`.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/LIBRARY.md")]
struct LibraryPage;
