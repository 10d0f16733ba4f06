//! What checks and changes say, read from outputs and patches: how many tests a runner counted ([`test_report`], [`node_tests`]), which of them
//! fail ([`failing`]), which numbers say how far the work is ([`numbers`]), what is missing around a check
//! ([`environment`]), what a patch does to tests ([`weakened`]), and what a check's command leads to ([`harness`],
//! [`test_command`]).
//!
//! Texts come in, evidence goes out. Nothing here decides what follows from it.

pub mod environment;
pub mod failing;
pub mod harness;
pub mod node_tests;
pub mod numbers;
pub mod test_command;
pub mod test_report;
pub mod weakened;
