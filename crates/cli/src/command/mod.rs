//! The commands, one file each. A command gets its arguments, the folder it works in and where to print.

pub mod archive;
pub mod attach;
pub mod bug_report;
pub mod completions;
pub mod control;
pub mod convert;
pub mod demo;
pub mod deploy;
pub mod diagnose;
pub mod doctor;
pub mod home;
pub mod init;
pub mod lint;
pub mod list;
pub mod logs;
pub mod man;
pub mod models;
pub mod notify;
pub mod probe;
pub mod restore;
pub mod resume;
pub mod run;
pub mod sandbox;
pub mod schema;
pub mod show;
pub mod status;
