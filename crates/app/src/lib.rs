//! From a request and an environment to a run, for every interface of `ralph`.
//!
//! An [`App`] is made from an [`Environment`], captured once at the edge. [`App::prepare`] turns a
//! [`RunRequest`] into a [`Plan`] and rejects problems before anything costs money. [`App::start`] creates
//! the workspace, takes the lock, registers the run, wires the backends and returns a [`StartedRun`] to drive.
//! [`App::spawn`] does all that in a detached process. [`App::resume`] continues an existing run;
//! [`App::open`] and [`App::list`] only read. Nothing here prints, exits, or reads the process environment
//! outside [`Environment::capture`]: progress goes to a [`Reporter`], failures are an [`AppError`].

mod agent;
pub mod agents;
mod app;
mod assumptions;
pub mod clean;
pub mod config;
mod environment;
mod error;
pub mod prove;
pub mod race;
pub mod read;
mod report;
mod request;
mod resume;
mod run;
pub mod start;
pub mod steering;
pub mod task;
pub mod trust;
pub mod variables;
mod wiring;

pub use app::{App, Doctor, OpenRun};
pub use assumptions::Assumptions;
#[doc(hidden)]
pub use config::dotenv::read_anything;
pub use environment::{DATABASE, Environment};
pub use error::{AppError, ErrorKind};
pub use report::{Notice, Reporter, SilentReporter};
pub use request::{NotifyRequest, Overrides, RaceRequest, RunRequest, TaskInput, Unfinished, Workplace};
pub use resume::ResumeOutcome;
pub use resume::adopt;
pub use resume::publish::PublishRequest;
pub use run::{ForkRequest, Plan, RunReport, StartedRun};
pub use start::hold::Hold;
pub use trust::consent::TrustRequest;
