//! `ralph`'s loop as a library.
//!
//! [`driver::Driver`] performs what [`ralph_domain::decide::decide`] names, one step after the other, and appends what
//! happened to the journal. It knows the outside world only through the ports of [`ralph_domain::ports`]; whoever wires
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
mod live;
mod log_tail;
mod notify;
mod observers;
mod plan_progress;
pub mod prompt;
mod proof;
mod receipt;
mod refusals;
pub mod relocate;
mod result;
pub mod run_id;
mod run_writer;
mod sandboxes;
mod step;
mod task_book;

pub use context::CancelFlag;
pub use driver::{Driver, DriverParts, Progress};
pub use error::DriveError;
pub use help::{Helpers, StuckAdvisor, StuckContext};
pub use notify::{catch_up, is_outstanding};
pub use observers::{LiveStatus, Observer};
pub use refusals::Refusals;
pub use run_writer::{RunWriter, WriterOptions};
pub use task_book::is_same_task;
