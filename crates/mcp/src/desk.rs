//! What stands between callers of the network and the runs.

use ralph_loop_app::AppError;
use ralph_loop_protocol::id::RunId;
use serde_json::{Map, Value};
use std::fmt::Debug;
use std::path::PathBuf;

/// A server with people, a queue and an audit log. What a caller changes goes through it, so that it is allowed, noted and limited
/// as it would be on the server's own pages. All of it may block.
pub trait Desk: Debug + Send + Sync {
    /// The folder that a call is about. Where none is named, and one must be, there is one only if the server knows no other.
    ///
    /// # Errors
    /// Where the folder is none of the server's.
    fn folder(&self, named: Option<&str>, must_be_clear: bool) -> Result<PathBuf, AppError>;

    /// Starts a run, or puts it into the queue: the arguments of `start_run`.
    ///
    /// # Errors
    /// Where the caller may not, or the run cannot begin.
    fn start(&self, wanted: &Map<String, Value>) -> Result<Value, AppError>;

    /// Sends a control: `pause`, `resume`, `stop`, `cancel`, `note` or `nudge`.
    ///
    /// # Errors
    /// Where the caller may not, or the run refuses.
    fn steer(&self, run: &RunId, kind: &'static str, text: Option<&str>) -> Result<Value, AppError>;
}
