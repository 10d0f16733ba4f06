//! Judging checks: what their output says ([`report`]), which files decide them besides the product ([`harness`]), and what a
//! final check proves ([`state`]). Pure: texts and facts come in, a decision goes out. `core` runs the checks.

pub mod harness;
pub mod report;
pub mod state;
pub mod suppressions;
