//! What the engine knows of a repo.

pub mod address;
pub mod guardrail;
pub mod installed;
pub mod protect;
pub mod setup;
