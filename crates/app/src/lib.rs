//! From a request and an environment to a run, for every interface of `ralph`.
//!
//! An [`App`] is made from an [`Environment`], captured once at the edge. [`App::prepare`] turns a
//! [`RunRequest`] into a [`Plan`] and rejects problems before anything costs money. [`App::start`] creates
//! the workspace, takes the lock, registers the run, wires the backends and returns a [`ReadyRun`] to drive.
//! [`App::spawn`] does all that in a detached process. [`App::resume`] continues an existing run;
//! [`App::open`] and [`App::list`] only read. Nothing here prints, exits, or reads the process environment
//! outside [`Environment::capture`]: progress goes to a [`Reporter`], failures are an [`AppError`].

mod agent;
pub mod agent_settings;
mod app;
pub mod asked_by;
mod assumptions;
pub mod clean;
pub mod consent;
pub mod consult;
pub mod costs;
pub mod debug;
mod dotenv;
mod dotenv_lines;
mod environment;
mod error;
pub mod facts;
pub mod find;
mod fleet_mark;
pub mod guardrails;
pub mod handover;
mod hidden;
mod hold;
mod hooks;
mod installed;
pub mod isolation;
pub mod lint;
pub mod list;
pub mod locks;
pub mod log;
pub mod model_access;
pub mod models;
pub mod notify;
pub mod now;
mod older;
pub mod own_program;
pub mod phrases;
pub mod programs;
pub mod project;
pub mod prove;
pub mod provider_calls;
pub mod providers;
pub mod race;
mod race_shares;
pub mod races;
mod record_trust;
pub mod repo_file;
mod report;
mod request;
mod resume;
mod run;
mod sandboxes;
pub mod scratch;
mod screen;
pub mod seen;
pub mod settings;
pub mod side_by_side;
mod spawn;
pub mod state_files;
pub mod status;
pub mod steer;
pub mod taking_home;
pub mod task_source;
pub mod task_templates;
pub mod timeline;
pub mod trust;
pub mod variables;
mod wiring;

pub use app::{App, Doctor, OpenRun};
pub use assumptions::Assumptions;
pub use consent::Asked;
#[doc(hidden)]
pub use dotenv::read_anything;
pub use environment::{DATABASE, Environment};
pub use error::{AppError, ErrorKind};
pub use hold::Hold;
pub use report::{Notice, Reporter, SilentReporter};
pub use request::{NotifyRequest, Overrides, PlaceRequest, RaceRequest, RunRequest, TaskInput, Unfinished};
pub use resume::ResumeOutcome;
pub use resume::adopt;
pub use resume::publish::PublishRequest;
pub use run::{FinishedRun, ForkRequest, Plan, ReadyRun};
