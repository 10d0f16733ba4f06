//! Changing a run, and taking its result.

pub(super) mod control;
pub(super) mod debug;
pub(super) mod diagnosis;
pub(super) mod guardrails;
pub(super) mod result;
pub(super) mod sandbox;
pub(super) mod task;
