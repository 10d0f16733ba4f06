//! Reading what a run recorded.

pub(super) mod artifacts;
pub(super) mod diff;
pub(super) mod events;
pub(super) mod files;
pub(super) mod iterations;
pub(super) mod output;
pub(super) mod shown_path;
