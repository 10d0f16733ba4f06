//! Runs from their start to their end.

pub(crate) mod alarms;
pub(crate) mod branching;
pub(crate) mod broken_places;
pub(crate) mod completion;
pub(crate) mod control;
pub(crate) mod detach;
pub(crate) mod in_place;
pub(crate) mod limits;
pub(crate) mod neighbours;
pub(crate) mod older;
pub(crate) mod partial_clones;
pub(crate) mod placing;
pub(crate) mod run_loop;
