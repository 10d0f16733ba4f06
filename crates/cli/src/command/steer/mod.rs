//! Changing a run while it works.

pub mod control;
pub mod diagnose;
pub mod guardrail;
