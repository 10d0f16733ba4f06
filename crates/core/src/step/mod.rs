//! The steps, one file each: perform the effect, journal it.

pub(crate) mod baseline_checks;
pub(crate) mod checkpoint;
pub(crate) mod clean_checkout;
pub(crate) mod consult;
pub(crate) mod environment;
pub(crate) mod evidence;
mod go_back;
mod hand_back;
mod hidden;
mod installed;
pub(crate) mod judge;
mod measure;
pub(crate) mod mitigate;
pub(crate) mod prepare;
pub(crate) mod prove;
pub mod prove_commit;
pub(crate) mod recheck;
pub(crate) mod recorder;
mod start_fault;
pub(crate) mod stuck_signs;
pub(crate) mod tick;
mod trees;
mod uncommitted;
pub(crate) mod verify;
pub(crate) mod wait;
pub(crate) mod work;
mod workspace_setup;
