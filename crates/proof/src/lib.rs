//! Judges checks: what their output says ([`report`]), which files decide them besides the product
//! ([`harness`]), and what a final check proves ([`state`]). Pure; `core` runs the checks.

pub mod harness;
pub mod hunks;
pub mod report;
pub mod state;
pub mod suppressions;
