//! The port between network callers and the runs.

use ralph_loop_app::AppError;
use ralph_loop_protocol::id::RunId;
use serde_json::{Map, Value};
use std::fmt::Debug;
use std::path::PathBuf;

/// A server with users, a queue and an audit log. Changes of a caller go through it, so that they are permitted,
/// logged and limited as in the dashboard. All of it may block.
pub trait RunService: Debug + Send + Sync {
    /// The folder of a call. If none is named, but one is required, the server must have only one.
    ///
    /// # Errors If the folder isn't one of the server's.
    fn folder(&self, named: Option<&str>, must_be_clear: bool) -> Result<PathBuf, AppError>;

    /// Starts or queues a run, with the arguments of `start_run`.
    ///
    /// # Errors If the caller lacks permission, or the run can't begin.
    fn start(&self, wanted: &Map<String, Value>) -> Result<Value, AppError>;

    /// Sends a control: `pause`, `resume`, `stop`, `cancel`, `note` or `nudge`.
    ///
    /// # Errors If the caller lacks permission, or the run refuses.
    fn steer(&self, run: &RunId, kind: &'static str, text: Option<&str>) -> Result<Value, AppError>;
}
