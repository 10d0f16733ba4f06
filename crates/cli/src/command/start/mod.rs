//! Starting runs and continuing them.

pub mod demo;
pub mod fork;
pub mod home;
pub mod resume;
pub mod run;
