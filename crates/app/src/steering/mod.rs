//! Changing a run or its repo from outside.

pub mod debug;
pub mod diagnosis;
pub mod guardrails;
pub mod own_program;
pub mod steer;
