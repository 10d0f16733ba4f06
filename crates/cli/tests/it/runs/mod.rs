//! Runs, from start to end.

pub(crate) mod branching;
pub(crate) mod broken_workspaces;
pub(crate) mod completion;
pub(crate) mod control;
pub(crate) mod copied_record;
pub(crate) mod detach;
pub(crate) mod in_place;
pub(crate) mod limits;
pub(crate) mod parallel_runs;
pub(crate) mod partial_clones;
pub(crate) mod placement;
pub(crate) mod run_loop;
pub(crate) mod stuck_detection;
